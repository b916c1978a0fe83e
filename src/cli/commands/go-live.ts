import { ArgumentError, readOptions } from '../arguments.ts';
import { type ExitCode, exitCodes } from '../exit-codes.ts';
import { readConfig } from '../chains.ts';
import { readGoLive, takeLive } from '../go-live.ts';

export async function run(args: readonly string[]): Promise<ExitCode> {
  const { values } = readOptions({
    args: [...args],
    options: { config: { type: 'string' }, by: { type: 'string' }, why: { type: 'string' } },
  });
  if (values.config === undefined)
    throw new ArgumentError("--config is missing: name the gateway's configuration");
  const request = readGoLive(values.by, values.why);
  const isLive = await takeLive(await readConfig(values.config), values.config, request);
  return isLive ? exitCodes.done : exitCodes.notDone;
}
