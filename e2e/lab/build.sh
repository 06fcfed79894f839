#!/bin/bash
# Builds all that the lab runs into the cache; quick when nothing has changed.
exec "$(dirname "${BASH_SOURCE[0]}")/lab" build "$@"
