#!/usr/bin/env node
import { complaint } from './node-version.mjs';

if (complaint) {
  process.stderr.write(`${complaint}\n`);
  process.exitCode = 1;
} else await import('./dist/cli/tollbook.js');
