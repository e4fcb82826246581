#!/bin/sh
echo '{"updated_input": {"command":"true"}}'
