#!/bin/sh
# A policy program. It reads the event, one JSON object, from standard input. Exit code 0
# without output means no opinion. Exit code 2 denies the call, and the agent reads the
# text on standard error as the reason.
#
# The program searches the whole event for words. That is simple, and it denies a few
# harmless calls. An agent can avoid these words on purpose: such a policy prevents
# mistakes, not attacks.

event=$(cat)

refuse() {
	echo "$1; ask the person you work for" >&2
	exit 2
}

has() {
	printf '%s' "$event" | grep -Eq -e "$1"
}

has '(^|[^[:alnum:]_-])rm +-[[:alpha:]]*[rRf]' && refuse "rm with -r or -f deletes without asking"
has '(^|[^[:alnum:]_-])mkfs' && refuse "mkfs empties a disk"
has 'of=/dev/' && refuse "dd onto a device overwrites it"
exit 0
