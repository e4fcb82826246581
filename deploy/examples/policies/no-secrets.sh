#!/bin/sh
# Denies a call that writes a private key into a file.

if grep -q -e '-----BEGIN [A-Z ]*PRIVATE KEY-----'; then
	echo "this would write a private key into a file; put it into the secret store" >&2
	exit 2
fi
