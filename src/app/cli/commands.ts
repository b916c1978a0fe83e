import { accountCommands } from '../../accounts/terminal/descriptions.ts';
import { auditCommands } from '../../audit/terminal/descriptions.ts';
import type { CommandDescription } from '../../base/terminal/command.ts';
import type { ExitCode } from '../../base/terminal/exit-codes.ts';
import { bookCommands } from '../../finance/terminal/book-descriptions.ts';
import { invoiceCommands } from '../../finance/terminal/invoice-descriptions.ts';
import { moneyCommands } from '../../finance/terminal/money-descriptions.ts';
import { jobCommands } from '../../jobs/terminal/descriptions.ts';
import { appCommands } from './descriptions.ts';

export interface Command extends CommandDescription {
  /** The command's function. It gets the arguments after the command's name and returns the exit code. */
  load(): Promise<(args: readonly string[]) => Promise<ExitCode>>;
}

const descriptions = {
  ...appCommands,
  ...accountCommands,
  ...auditCommands,
  ...jobCommands,
  ...moneyCommands,
  ...bookCommands,
  ...invoiceCommands,
};

/** Where each command is, in the order of the list. Its file is loaded only when the command runs, so that `--help` stays fast. */
const loaders: Readonly<Record<keyof typeof descriptions, Command['load']>> = {
  start: async () => (await import('./commands/start.ts')).run,
  devnet: async () => (await import('./commands/devnet.ts')).run,
  pay: async () => (await import('./commands/pay.ts')).run,
  proxy: async () => (await import('./commands/proxy.ts')).run,
  init: async () => (await import('./commands/init.ts')).run,
  serve: async () => (await import('./commands/serve.ts')).run,
  pricing: async () => (await import('./commands/pricing.ts')).run,
  migrate: async () => (await import('./commands/migrate.ts')).run,
  recover: async () => (await import('../../finance/commands/recover.ts')).run,
  'go-live': async () => (await import('../../finance/commands/go-live.ts')).run,
  doctor: async () => (await import('./commands/doctor.ts')).run,
  'config check': async () => (await import('./commands/config.ts')).check,
  'config reference': async () => (await import('./commands/config.ts')).reference,
  'commands reference': async () => {
    const { reference } = await import('./commands/commands.ts');
    return (args) => reference(commands, args);
  },
  'auth-dry-run': async () => (await import('../../jobs/commands/auth-dry-run.ts')).run,
  settlements: async () => (await import('../../jobs/commands/settlements.ts')).run,
  'settlements resolve': async () => (await import('../../finance/commands/settlements/resolve.ts')).run,
  'refunds due': async () => (await import('../../finance/commands/refunds/due.ts')).run,
  'refunds requests': async () => (await import('../../finance/commands/refunds/requests.ts')).list,
  'refunds grant': async () => (await import('../../finance/commands/refunds/requests.ts')).grant,
  'refunds decline': async () => (await import('../../finance/commands/refunds/requests.ts')).decline,
  'refunds batch': async () => (await import('../../finance/commands/refunds/batch.ts')).run,
  'refunds abandon': async () => (await import('../../finance/commands/refunds/abandon.ts')).run,
  'refunds record': async () => (await import('../../finance/commands/refunds/record.ts')).run,
  'sweeps record': async () => (await import('../../finance/commands/sweeps.ts')).record,
  'sweeps list': async () => (await import('../../finance/commands/sweeps.ts')).list,
  'sweeps payments': async () => (await import('../../finance/commands/sweeps.ts')).payments,
  'transfers record': async () => (await import('../../finance/commands/transfers.ts')).record,
  'transfers reverse': async () => (await import('../../finance/commands/transfers.ts')).reverse,
  'transfers list': async () => (await import('../../finance/commands/transfers.ts')).list,
  'calls dead': async () => (await import('../../jobs/commands/calls.ts')).dead,
  'calls requeue': async () => (await import('../../jobs/commands/calls.ts')).requeue,
  'calls discard': async () => (await import('../../jobs/commands/calls.ts')).discard,
  'quotes revoke': async () => (await import('../../jobs/commands/quotes/revoke.ts')).run,
  'operators invite': async () => (await import('../../accounts/commands/operators.ts')).invite,
  'operators list': async () => (await import('../../accounts/commands/operators.ts')).list,
  'operators withdraw': async () => (await import('../../accounts/commands/operators.ts')).withdraw,
  'operators code': async () => (await import('./commands/operators/code.ts')).run,
  'operators reset-factor': async () => (await import('../../accounts/commands/operators.ts')).resetFactor,
  'tokens create': async () => (await import('../../accounts/commands/tokens.ts')).create,
  'tokens list': async () => (await import('../../accounts/commands/tokens.ts')).list,
  'tokens revoke': async () => (await import('../../accounts/commands/tokens.ts')).revoke,
  'users disable': async () => (await import('../../accounts/commands/users.ts')).disable,
  'users enable': async () => (await import('../../accounts/commands/users.ts')).enable,
  'users erase': async () => (await import('../../accounts/commands/users.ts')).erase,
  'keys create': async () => (await import('../../accounts/commands/keys.ts')).create,
  'keys list': async () => (await import('../../accounts/commands/keys.ts')).list,
  'keys revoke': async () => (await import('../../accounts/commands/keys.ts')).revoke,
  'credit grant': async () => (await import('../../accounts/commands/credit.ts')).grant,
  'credit expire': async () => (await import('../../accounts/commands/credit.ts')).expire,
  'credit list': async () => (await import('../../accounts/commands/credit.ts')).list,
  'spend list': async () => (await import('../../chat/commands/spend-list.ts')).run,
  export: async () => (await import('../../finance/commands/export.ts')).run,
  'costs record': async () => (await import('../../finance/commands/costs.ts')).record,
  'costs reverse': async () => (await import('../../finance/commands/costs.ts')).reverse,
  'costs list': async () => (await import('../../finance/commands/costs.ts')).list,
  aging: async () => (await import('../../finance/commands/aging.ts')).run,
  reconcile: async () => (await import('../../finance/commands/reconcile.ts')).run,
  'reconcile explain': async () => (await import('../../finance/commands/reconcile/explain.ts')).run,
  'period close': async () => (await import('../../finance/commands/period.ts')).close,
  'period review': async () => (await import('../../finance/commands/period.ts')).review,
  'period reopen': async () => (await import('../../finance/commands/period.ts')).reopen,
  'period list': async () => (await import('../../finance/commands/period.ts')).list,
  'period show': async () => (await import('../../finance/commands/period.ts')).show,
  'period check': async () => (await import('../../finance/commands/period.ts')).check,
  'invoices issue': async () => (await import('../../finance/commands/invoices.ts')).issue,
  'invoices statement': async () => (await import('../../finance/commands/invoices.ts')).statement,
  'invoices list': async () => (await import('../../finance/commands/invoices.ts')).list,
  verify: async () => (await import('../../finance/commands/verify.ts')).run,
  'attestations sign': async () => (await import('../../finance/commands/attestations.ts')).sign,
  'attestations record': async () => (await import('../../finance/commands/attestations.ts')).record,
  'attestations list': async () => (await import('../../finance/commands/attestations.ts')).list,
  'log key': async () => (await import('../../audit/commands/log/key.ts')).run,
  'projections rebuild': async () => (await import('../../audit/commands/projections/rebuild.ts')).run,
  'runners pause': async () => (await import('../../jobs/commands/runners.ts')).pause,
  'runners resume': async () => (await import('../../jobs/commands/runners.ts')).resume,
};

/** Every command. */
export const commands: Readonly<Record<string, Command | undefined>> & Record<string, Command> =
  Object.fromEntries(
    Object.entries(loaders).map(([name, load]) => [
      name,
      { ...descriptions[name as keyof typeof descriptions], load },
    ]),
  );
