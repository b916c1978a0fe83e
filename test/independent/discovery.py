"""Checks entries of x402's extension `bazaar` by its specification, with another implementation of JSON Schema.

Reads a JSON list of entries, prints a JSON list with the faults of each. Shares no code with Tollbook or the packages of x402.
"""

import json
import sys

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

DRAFT = "https://json-schema.org/draft/2020-12/schema"
# no sets: what is compared need not be hashable
METHODS = ("GET", "HEAD", "DELETE")
BODY_METHODS = ("POST", "PUT", "PATCH")
BODY_TYPES = ("json", "form-data", "text")


def references(node):
    """The values of every `$ref` and `$id`, wherever they stand: a facilitator need not know what is data."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key in ("$ref", "$id"):
                yield value
            yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


def info_faults(info):
    given = info.get("input") if isinstance(info, dict) else None
    if not isinstance(given, dict):
        return ["info.input is no object"]
    if given.get("type") != "http":
        return ["info.input.type is not http"]
    method = given.get("method")
    if method not in METHODS + BODY_METHODS:
        return ["info.input.method is no method"]
    faults = []
    if method in BODY_METHODS:
        if given.get("bodyType") not in BODY_TYPES:
            faults.append("info.input.bodyType is no type of a body")
        if "body" not in given:
            faults.append("info.input.body is missing")
    elif "bodyType" in given:
        faults.append("info.input.bodyType stands beside a method without a body")
    output = info.get("output")
    if output is not None and not (isinstance(output, dict) and isinstance(output.get("type"), str)):
        faults.append("info.output.type is no text")
    return faults


def schema_faults(schema):
    if not isinstance(schema, dict):
        return ["schema is no object"]
    faults = []
    if schema.get("$schema") != DRAFT:
        faults.append("schema is not of draft 2020-12")
    if any(not (isinstance(name, str) and name.startswith("#")) for name in references(schema)):
        faults.append("schema names something outside of it")
    if "input" not in schema.get("required", []):
        faults.append("schema does not require input")
    parts = schema.get("properties", {}).get("input", {}).get("properties", {})
    if parts.get("type", {}).get("const") != "http":
        faults.append("schema does not check info.input.type")
    if any(method not in BODY_METHODS for method in parts.get("method", {}).get("enum", [None])):
        faults.append("schema does not check info.input.method")
    return faults


def faults_of(entry):
    faults = info_faults(entry.get("info")) + schema_faults(entry.get("schema"))
    # nothing may be fetched for a schema of a stranger
    if "schema is no object" in faults or "schema names something outside of it" in faults:
        return faults
    try:
        Draft202012Validator.check_schema(entry["schema"])
    except SchemaError as error:
        return faults + ["schema is none: " + error.message]
    errors = Draft202012Validator(entry["schema"]).iter_errors(entry.get("info"))
    return faults + [f"{error.json_path}: {error.message}" for error in errors]


print(json.dumps([faults_of(entry) for entry in json.load(sys.stdin)]))
