import { parseArgs } from 'node:util';
import { ArgumentError, exitCodes } from '../arguments.ts';
import { readConfig } from '../chains.ts';
import { readGoLive, takeLive } from '../go-live.ts';

export async function run(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: { config: { type: 'string' }, by: { type: 'string' }, why: { type: 'string' } },
  });
  if (values.config === undefined)
    throw new ArgumentError("--config is missing: name the gateway's configuration");
  const request = readGoLive(values.by, values.why);
  const isLive = await takeLive(await readConfig(values.config), values.config, request);
  return isLive ? exitCodes.done : exitCodes.refused;
}
