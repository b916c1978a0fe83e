import { ArgumentError, readOptions } from '../../base/terminal/arguments.ts';
import { type ExitCode, exitCodes } from '../../base/terminal/exit-codes.ts';
import { readConfig } from '../../audit/terminal/chains.ts';
import { readGoLive, takeLive } from '../terminal/go-live.ts';
import { moneyCommands } from '../terminal/money-descriptions.ts';

export async function run(args: readonly string[]): Promise<ExitCode> {
  const { values } = readOptions(moneyCommands['go-live'], args);
  if (values.config === undefined)
    throw new ArgumentError("--config is missing: name the gateway's configuration");
  const request = readGoLive(values.by, values.why);
  const isLive = await takeLive(await readConfig(values.config), values.config, request);
  return isLive ? exitCodes.done : exitCodes.notDone;
}
