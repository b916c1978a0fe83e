import path from 'node:path';
import { pathToFileURL } from 'node:url';
import type * as Serve from '../../src/app/cli/commands/serve.ts';
import type { ConstantChanges } from '../../src/base/config/constants.ts';

/** `tollbook serve` with other values of constants, which come first: of the program in the working directory, which may have mistakes planted. */
const [constants = '{}', ...args] = process.argv.slice(2);
const at = pathToFileURL(path.resolve('src/app/cli/commands/serve.ts')).href;
const { run } = (await import(at)) as typeof Serve;
process.exitCode = await run(args, { constants: JSON.parse(constants) as ConstantChanges });
