"""What the grammars of JavaScript and TypeScript call their nodes."""

from clean_room_agent.languages.nodes import Nodes

NAMELESS = frozenset({"arrow_function", "function_expression", "generator_function"})
CLASSES = frozenset({"class_declaration", "abstract_class_declaration"})
FIELDS = frozenset({"public_field_definition", "field_definition"})
NAMED_FUNCTIONS = frozenset({"function_declaration", "generator_function_declaration", "method_definition"})

DECLARATIONS = frozenset({"lexical_declaration", "variable_declaration"})

NODES = Nodes(
    sequences=frozenset(
        {"program", "statement_block", "class_body", "switch_body", "switch_case", "switch_default", "array"}
        | {"object", "arguments", "enum_body", "interface_body", "object_type", "jsx_element"}
    ),
    statements=frozenset({"program", "statement_block", "switch_case", "switch_default"}),
    bodies=frozenset({"statement_block", "class_body", "switch_body"}),
    blocks=frozenset({"statement_block"}),
    strings=frozenset({"string", "template_string"}),
    imports=frozenset({"import_statement"}),
    guards=frozenset({"if_statement", "try_statement"}),
    definitions=NAMED_FUNCTIONS
    | CLASSES
    | FIELDS
    | {"interface_declaration", "enum_declaration", "type_alias_declaration", "variable_declarator"},
    wrappers=DECLARATIONS | {"export_statement"},
    declarations=DECLARATIONS,
    overloads=frozenset({"function_signature", "method_signature"}),
    classes=CLASSES,
    class_bodies=frozenset({"class_body", "interface_body"}),
    functions=NAMED_FUNCTIONS | NAMELESS,
    nameless=NAMELESS,
    naming=FIELDS | {"variable_declarator"},
    members=FIELDS | {"method_definition"},
    ends=frozenset({"return_statement", "throw_statement"}),
    assignments=frozenset({"variable_declarator"}),
    calls=frozenset({"call_expression", "new_expression"}),
    arguments=frozenset({"arguments"}),
    parts={
        "if_statement": ("condition",),
        "while_statement": ("condition",),
        "do_statement": ("condition",),
        "for_statement": ("condition",),
        "for_in_statement": ("right",),
        "ternary_expression": ("condition",),
        "assignment_expression": ("right",),
        "augmented_assignment_expression": ("right",),
        "variable_declarator": ("value",),
    },
    handlers=frozenset({"catch_clause"}),
    first_parts=frozenset({"return_statement", "throw_statement"}),
    requires=b"require(",
)
