#!/usr/bin/env node
import { complaint } from './node-version.mjs';

if (complaint) {
  process.stderr.write(`${complaint}\n`);
  // could not be done, as in the table of exit codes
  process.exitCode = 2;
} else await import('./dist/app/cli/tollbook.js');
