#!/bin/sh
echo "all is well"
