#!/usr/bin/env node
/** A hook is asked for with each call of an agent: it loads nothing of the command line, which takes three times as long. */
const isHook = process.argv[2] === "hook";
await (isHook ? import("./hook-command.ts") : import("./command-line.ts"));
