#!/usr/bin/env python3
"""Verifies signed offers and receipts of x402 with PyJWT and cryptography alone.

Reads a JSON list of {"did": DID document, "kind": "offer" or "receipt", "signed": the signed object} from standard input. Writes a list:
{"payload": …} where the signature holds, {"wrong": why} where it does not.
"""
import json
import sys

import jwt
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, utils

from verify import keccak256

FIELDS = {
    "offer": "uint256 version,string resourceUrl,string scheme,string network,string asset,string payTo,string amount,uint256 validUntil",
    "receipt": "uint256 version,string network,string resourceUrl,string payer,uint256 issuedAt,string transaction",
}


def word(number):
    return number.to_bytes(32, "big")


def hash_of(text):
    return keccak256(text.encode())


def digest_of(kind, payload):
    name = kind.capitalize()
    fields = [field.split(" ") for field in FIELDS[kind].split(",")]
    words = [word(payload[key]) if of == "uint256" else hash_of(payload[key]) for of, key in fields]
    struct = keccak256(hash_of(f"{name}({FIELDS[kind]})") + b"".join(words))
    domain = hash_of("EIP712Domain(string name,string version,uint256 chainId)")
    separator = keccak256(domain + hash_of(f"x402 {kind}") + hash_of("1") + word(1))
    return keccak256(b"\x19\x01" + separator + struct)


def number_of(text):
    return int.from_bytes(jwt.utils.base64url_decode(text), "big")


def verify_typed_data(methods, kind, signed):
    signature = bytes.fromhex(signed["signature"][2:])
    der = utils.encode_dss_signature(int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:64], "big"))
    for method in methods:
        jwk = method.get("publicKeyJwk", {})
        if jwk.get("crv") != "secp256k1":
            continue
        key = ec.EllipticCurvePublicNumbers(number_of(jwk["x"]), number_of(jwk["y"]), ec.SECP256K1()).public_key()
        try:
            key.verify(der, digest_of(kind, signed["payload"]), ec.ECDSA(utils.Prehashed(hashes.SHA256())))
            return signed["payload"]
        except Exception:
            continue
    raise ValueError("no key of the document has signed this")


def verify_jws(methods, signed):
    kid = jwt.get_unverified_header(signed["signature"])["kid"]
    jwk = next((method["publicKeyJwk"] for method in methods if method["id"] == kid), None)
    if jwk is None:
        raise ValueError("the document lacks the key")
    key = jwt.algorithms.OKPAlgorithm.from_jwk(json.dumps(jwk))
    # a payload is no token: it has none of a token's times
    return jwt.decode(signed["signature"], key, algorithms=["EdDSA"], options={"verify_iat": False, "verify_exp": False})


def verify(case):
    signed = case["signed"]
    methods = case["did"]["verificationMethod"]
    try:
        if signed["format"] == "jws":
            return {"payload": verify_jws(methods, signed)}
        return {"payload": verify_typed_data(methods, case["kind"], signed)}
    except Exception as error:
        return {"wrong": str(error)}


if __name__ == "__main__":
    json.dump([verify(case) for case in json.load(sys.stdin)], sys.stdout)
