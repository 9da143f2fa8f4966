"""Checks standard input against check.schema.json; with jsonschema if it is there, else without.

The second way knows only the words that this schema uses, and refuses a schema with others.
"""

import json
import pathlib
import re
import sys

SCHEMA = json.loads((pathlib.Path(__file__).parent.parent / "check.schema.json").read_text())
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None), "integer": int}
SILENT = {"$schema", "title", "description", "definitions"}


def complaints(schema, value, place="$"):
    """Yields what is wrong with the value."""
    if schema is True:
        return
    for word, argument in schema.items():
        if word in SILENT:
            continue
        yield from (f"{place}: {text}" for text in complaint_of(word, argument, schema, value))
        if word == "properties" and isinstance(value, dict):
            for name, inner in argument.items():
                if name in value:
                    yield from complaints(inner, value[name], f"{place}.{name}")
        elif word == "items" and isinstance(value, list):
            for index, item in enumerate(value):
                yield from complaints(argument, item, f"{place}[{index}]")
        elif word == "$ref":
            yield from complaints(SCHEMA["definitions"][argument.rsplit("/", 1)[1]], value, place)


def complaint_of(word, argument, schema, value):
    """Yields what one word of the schema has against the value itself."""
    if word in ("required", "additionalProperties", "minProperties") and not isinstance(value, dict):
        return
    if word == "type":
        names = argument if isinstance(argument, list) else [argument]
        if not any(is_a(value, name) for name in names):
            yield f"is no {names}"
    elif word == "const":
        if value != argument or isinstance(value, bool) != isinstance(argument, bool):
            yield f"is not {argument!r}"
    elif word == "enum":
        if value not in argument:
            yield f"{value!r} is none of {argument}"
    elif word == "required":
        yield from (f"lacks {name}" for name in argument if name not in value)
    elif word == "additionalProperties":
        yield from (f"has {name}" for name in value if name not in schema["properties"])
    elif word == "pattern":
        if isinstance(value, str) and not re.search(argument, value):
            yield f"{value!r} does not match {argument}"
    elif word == "minLength":
        if isinstance(value, str) and len(value) < argument:
            yield "is too short"
    elif word == "minProperties":
        if len(value) < argument:
            yield "has too few members"
    elif word in ("minimum", "maximum"):
        if is_a(value, "integer") and (value < argument if word == "minimum" else value > argument):
            yield f"{value} is beyond {argument}"
    elif word == "oneOf":
        fitting = [index for index, inner in enumerate(argument) if not list(complaints(inner, value))]
        if len(fitting) != 1:
            yield f"fits {len(fitting)} of the forms"
    elif word not in ("properties", "items", "$ref"):
        sys.exit(f"validate.py does not know the word {word}")


def is_a(value, name):
    return isinstance(value, TYPES[name]) and not (name == "integer" and isinstance(value, bool))


def main():
    value = json.load(sys.stdin)
    found = list(complaints(SCHEMA, value))
    try:
        import jsonschema
    except ImportError:
        pass
    else:
        jsonschema.Draft7Validator.check_schema(SCHEMA)
        found += [error.message for error in jsonschema.Draft7Validator(SCHEMA).iter_errors(value)]
    if found:
        sys.exit("\n".join(found))


main()
