#!/usr/bin/env node
import { exitCodes } from '../../base/terminal/exit-codes.ts';
import { runCommand } from './run-command.ts';
import { fail, outlastReaders } from '../../base/terminal/terminal.ts';

outlastReaders();
// a fault that no command has caught: Node would end with the code of a finding
process.on('uncaughtException', (error) => {
  fail(error.stack ?? error.message);
  process.exit(exitCodes.notDone);
});

process.exitCode = await runCommand(process.argv.slice(2));
