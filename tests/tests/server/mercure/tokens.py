"""Creates JSON Web Tokens with Python's hmac and with openssl, which share no code with the server.

Reads one JSON object per line: `key` (a secret, or the path of a private key in PEM), `alg` of the signature, `head` and
`claims`. Writes one token per line.
"""
import base64
import hashlib
import hmac
import json
import subprocess
import sys
import tempfile


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def openssl(*arguments, message):
    return subprocess.run(["openssl", *arguments], input=message, stdout=subprocess.PIPE, check=True).stdout


def raw_ecdsa(der, size):
    """The two numbers of a DER signature, each with this many bytes."""
    numbers, at = [], 2 if der[1] < 0x80 else 3
    for _ in range(2):
        length = der[at + 1]
        number = int.from_bytes(der[at + 2:at + 2 + length], "big")
        numbers.append(number.to_bytes(size, "big"))
        at += 2 + length
    return b"".join(numbers)


def sign(alg, key, message):
    if alg == "none":
        return b""
    bits = alg[2:]
    if alg.startswith("HS"):
        return hmac.new(key.encode(), message, getattr(hashlib, "sha" + bits)).digest()
    if alg.startswith("RS"):
        return openssl("dgst", "-sha" + bits, "-sign", key, message=message)
    if alg.startswith("PS"):
        pss = ["-sigopt", "rsa_padding_mode:pss", "-sigopt", "rsa_pss_saltlen:digest"]
        return openssl("dgst", "-sha" + bits, *pss, "-sign", key, message=message)
    if alg.startswith("ES"):
        return raw_ecdsa(openssl("dgst", "-sha" + bits, "-sign", key, message=message), {"256": 32, "384": 48}[bits])
    with tempfile.NamedTemporaryFile() as file:
        file.write(message)
        file.flush()
        return openssl("pkeyutl", "-sign", "-rawin", "-in", file.name, "-inkey", key, message=b"")


for line in sys.stdin:
    wanted = json.loads(line)
    parts = [json.dumps(wanted[part], separators=(",", ":")).encode() for part in ("head", "claims")]
    message = ".".join(b64(part) for part in parts)
    print(message + "." + b64(sign(wanted["alg"], wanted["key"], message.encode())), flush=True)
