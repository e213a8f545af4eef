#!/bin/sh
# Longer than its timeout: it is ended, and nobody waits for it.
sleep 30
