#!/bin/sh
echo '{"permission":"deny","user_message":"no"}'
