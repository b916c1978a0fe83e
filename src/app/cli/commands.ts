import { accountCommands } from '../../accounts/terminal/descriptions.ts';
import { auditCommands } from '../../audit/terminal/descriptions.ts';
import type { CommandDescription } from '../../base/terminal/command.ts';
import type { ExitCode } from '../../base/terminal/exit-codes.ts';
import { bookCommands } from '../../finance/terminal/book-descriptions.ts';
import { moneyCommands } from '../../finance/terminal/money-descriptions.ts';
import { jobCommands } from '../../jobs/terminal/descriptions.ts';
import { appCommands } from './descriptions.ts';

/** A command's file. `run` gets the arguments after the command's name and returns the exit code. */
interface CommandModule {
  run(args: readonly string[]): Promise<ExitCode>;
}

export interface Command extends CommandDescription {
  load(): Promise<CommandModule>;
}

const descriptions = {
  ...appCommands,
  ...accountCommands,
  ...auditCommands,
  ...jobCommands,
  ...moneyCommands,
  ...bookCommands,
};

/** Where each command is, in the order of the list. Its file is loaded only when the command runs, so that `--help` stays fast. */
const loaders: Readonly<Record<keyof typeof descriptions, Command['load']>> = {
  start: () => import('./commands/start.ts'),
  devnet: () => import('./commands/devnet.ts'),
  pay: () => import('./commands/pay.ts'),
  serve: () => import('./commands/serve.ts'),
  pricing: () => import('./commands/pricing.ts'),
  migrate: () => import('./commands/migrate.ts'),
  recover: () => import('../../finance/commands/recover.ts'),
  'go-live': () => import('../../finance/commands/go-live.ts'),
  'config check': () => import('./commands/config/check.ts'),
  'config reference': () => import('./commands/config/reference.ts'),
  'auth-dry-run': () => import('../../jobs/commands/auth-dry-run.ts'),
  settlements: () => import('../../jobs/commands/settlements/list.ts'),
  'settlements resolve': () => import('../../finance/commands/settlements/resolve.ts'),
  'refunds due': () => import('../../finance/commands/refunds/due.ts'),
  'refunds batch': () => import('../../finance/commands/refunds/batch.ts'),
  'refunds abandon': () => import('../../finance/commands/refunds/abandon.ts'),
  'refunds record': () => import('../../finance/commands/refunds/record.ts'),
  'sweeps record': () => import('../../finance/commands/sweeps/record.ts'),
  'sweeps list': () => import('../../finance/commands/sweeps/list.ts'),
  'sweeps payments': () => import('../../finance/commands/sweeps/payments.ts'),
  'transfers record': () => import('../../finance/commands/transfers/record.ts'),
  'transfers reverse': () => import('../../finance/commands/transfers/reverse.ts'),
  'transfers list': () => import('../../finance/commands/transfers/list.ts'),
  'calls dead': () => import('../../jobs/commands/calls/dead.ts'),
  'calls requeue': () => import('../../jobs/commands/calls/requeue.ts'),
  'calls discard': () => import('../../jobs/commands/calls/discard.ts'),
  'quotes revoke': () => import('../../jobs/commands/quotes/revoke.ts'),
  'operators invite': () => import('../../accounts/commands/operators/invite.ts'),
  'operators list': () => import('../../accounts/commands/operators/list.ts'),
  'operators withdraw': () => import('../../accounts/commands/operators/withdraw.ts'),
  'operators code': () => import('./commands/operators/code.ts'),
  'operators reset-factor': () => import('../../accounts/commands/operators/reset-factor.ts'),
  'tokens create': () => import('../../accounts/commands/tokens/create.ts'),
  'tokens list': () => import('../../accounts/commands/tokens/list.ts'),
  'tokens revoke': () => import('../../accounts/commands/tokens/revoke.ts'),
  'users disable': () => import('../../accounts/commands/users/disable.ts'),
  'users enable': () => import('../../accounts/commands/users/enable.ts'),
  'users erase': () => import('../../accounts/commands/users/erase.ts'),
  'keys create': () => import('../../accounts/commands/keys/create.ts'),
  'keys list': () => import('../../accounts/commands/keys/list.ts'),
  'keys revoke': () => import('../../accounts/commands/keys/revoke.ts'),
  'credit grant': () => import('../../accounts/commands/credit/grant.ts'),
  'credit expire': () => import('../../accounts/commands/credit/expire.ts'),
  'credit list': () => import('../../accounts/commands/credit/list.ts'),
  'spend list': () => import('../../chat/commands/spend/list.ts'),
  export: () => import('../../finance/commands/export.ts'),
  'costs record': () => import('../../finance/commands/costs/record.ts'),
  'costs reverse': () => import('../../finance/commands/costs/reverse.ts'),
  'costs list': () => import('../../finance/commands/costs/list.ts'),
  aging: () => import('../../finance/commands/aging.ts'),
  reconcile: () => import('../../finance/commands/reconcile.ts'),
  'reconcile explain': () => import('../../finance/commands/reconcile/explain.ts'),
  'period close': () => import('../../finance/commands/period/close.ts'),
  'period review': () => import('../../finance/commands/period/review.ts'),
  'period reopen': () => import('../../finance/commands/period/reopen.ts'),
  'period list': () => import('../../finance/commands/period/list.ts'),
  'period show': () => import('../../finance/commands/period/show.ts'),
  'period check': () => import('../../finance/commands/period/check.ts'),
  verify: () => import('../../finance/commands/verify.ts'),
  'log key': () => import('../../audit/commands/log/key.ts'),
  'projections rebuild': () => import('../../audit/commands/projections/rebuild.ts'),
  'runners pause': () => import('../../jobs/commands/runners/pause.ts'),
  'runners resume': () => import('../../jobs/commands/runners/resume.ts'),
};

/** Every command. */
export const commands: Readonly<Record<string, Command | undefined>> & Record<string, Command> =
  Object.fromEntries(
    Object.entries(loaders).map(([name, load]) => [
      name,
      { ...descriptions[name as keyof typeof descriptions], load },
    ]),
  );
