#!/bin/sh
echo "{\"inject\": {\"content\": \"$MASSGEN_TOOL_NAME\", \"strategy\": \"user_message\"}}"
