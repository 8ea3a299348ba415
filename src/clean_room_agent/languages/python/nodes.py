"""What Python's grammar calls its nodes."""

from clean_room_agent.languages.nodes import Nodes

NODES = Nodes(
    sequences=frozenset({"module", "block", "list", "tuple", "set", "dictionary", "argument_list"}),
    statements=frozenset({"module", "block"}),
    bodies=frozenset({"block"}),
    blocks=frozenset({"block"}),
    strings=frozenset({"string", "concatenated_string"}),
    imports=frozenset({"import_statement", "import_from_statement", "future_import_statement"}),
    guards=frozenset({"if_statement", "try_statement"}),
    definitions=frozenset({"function_definition", "class_definition"}),
    wrappers=frozenset({"decorated_definition"}),
    classes=frozenset({"class_definition"}),
    functions=frozenset({"function_definition"}),
    ends=frozenset({"return_statement", "raise_statement"}),
    stubs=frozenset({"raise_statement"}),
    assignments=frozenset({"assignment"}),
    calls=frozenset({"call"}),
    arguments=frozenset({"argument_list"}),
    parts={
        "if_statement": ("condition",),
        "elif_clause": ("condition",),
        "while_statement": ("condition",),
        "for_statement": ("right",),
        "assignment": ("right",),
        "augmented_assignment": ("right",),
    },
    first_parts=frozenset({"return_statement", "yield", "raise_statement", "await", "assert_statement"}),
    indented=True,
    comment="#",
)
