#!/bin/sh
# Appends the event, one line of JSON, to the file $AUDIT_LOG. It prints nothing, so it
# has no opinion on the call. Without the file it fails: the broker counts and logs the
# failure, and the call passes.

exec cat >>"${AUDIT_LOG:?is not set; set it to the path of the log in the environment of the worker}"
