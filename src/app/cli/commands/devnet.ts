import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { startDevnet } from '../../../devnet/devnet.ts';
import { requireFreePorts } from '../../../devnet/ports.ts';
import { readOptions, readPort } from '../../../base/terminal/arguments.ts';
import { type ExitCode, exitCodes } from '../../../base/terminal/exit-codes.ts';
import { say, untilSignal } from '../../../base/terminal/terminal.ts';
import { appCommands } from '../descriptions.ts';

/** The devnet as a separate process. Under `npm start` it sends its addresses to its parent process, and ends with it. */
export async function run(args: readonly string[]): Promise<ExitCode> {
  const { values } = readOptions(appCommands.devnet, args);
  const named = values['chain-port'];
  const chain = named === undefined ? undefined : readPort('--chain-port', named);
  if (chain !== undefined) await requireFreePorts([{ part: 'chain', port: chain, option: '--chain-port' }]);
  const signal = Promise.race([untilSignal(), untilOrphaned()]);
  const dir = path.resolve(values.dir);
  await mkdir(dir, { recursive: true });
  const { stop, ...devnet } = await startDevnet({ dir, ports: chain === undefined ? {} : { chain } });
  if (process.send) process.send(devnet);
  else for (const [name, value] of Object.entries(devnet)) say(`${name.padEnd(17)}${JSON.stringify(value)}`);
  await signal;
  await stop();
  // the channel to the parent would keep this process
  if (process.connected) process.disconnect();
  return exitCodes.done;
}

function untilOrphaned(): Promise<unknown> {
  return new Promise((resolve) => process.once('disconnect', resolve));
}
