"""What Go's grammar calls its nodes."""

from clean_room_agent.languages.nodes import Nodes

NODES = Nodes(
    sequences=frozenset(
        {"source_file", "statement_list", "argument_list", "literal_value", "field_declaration_list"}
        | {"interface_type", "import_spec_list", "var_spec_list", "const_declaration", "type_declaration"}
    ),
    statements=frozenset({"source_file", "statement_list"}),
    statement_lists=frozenset({"statement_list"}),
    bodies=frozenset({"block"}),
    blocks=frozenset({"block"}),
    strings=frozenset({"interpreted_string_literal", "raw_string_literal", "rune_literal"}),
    imports=frozenset({"import_declaration"}),
    definitions=frozenset(
        {"function_declaration", "method_declaration", "type_spec", "type_alias", "const_spec", "var_spec"}
    ),
    wrappers=frozenset({"type_declaration", "const_declaration", "var_declaration"}),
    functions=frozenset({"function_declaration", "method_declaration", "func_literal"}),
    nameless=frozenset({"func_literal"}),
    members=frozenset({"method_declaration"}),
    ends=frozenset({"return_statement"}),
    calls=frozenset({"call_expression"}),
    arguments=frozenset({"argument_list"}),
    parts={
        "if_statement": ("condition",),
        "for_clause": ("condition",),
        "range_clause": ("right",),
        "assignment_statement": ("right",),
        "short_var_declaration": ("right",),
        "var_spec": ("value",),
    },
    first_parts=frozenset({"return_statement"}),
)
