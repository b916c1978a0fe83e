import { bookFormats } from '../domain/bookkeeping/format.ts';
import { operatorScopes } from '../domain/identity/operator-scope.ts';

/** Runs with the arguments after its name; returns the exit code. */
export interface CommandModule {
  run(args: readonly string[]): Promise<number>;
}

interface Command {
  readonly summary: string;
  readonly usage: string;
  load(): Promise<CommandModule>;
}

/** Every command, loaded only when it is asked for. */
export const commands: Readonly<Record<string, Command | undefined>> & Record<string, Command> = {
  start: {
    summary: 'runs everything on this machine: database, devnet, gateway, and pays for one job',
    usage:
      'tollbook start [--fresh] [--dir .tollbook] [--port 8402]\n  --fresh  begins anew instead of going on where the last run stopped',
    load: () => import('./commands/start.ts'),
  },
  devnet: {
    summary: 'runs only the devnet: chain, tokens, facilitator, example runner',
    usage: 'tollbook devnet [--dir .tollbook]',
    load: () => import('./commands/devnet.ts'),
  },
  pay: {
    summary: 'pays for a job on the devnet and waits for its result',
    usage: "tollbook pay SERVICE JOB 'BODY' [--dir .tollbook]",
    load: () => import('./commands/pay.ts'),
  },
  serve: {
    summary: 'serves a gateway',
    usage:
      'tollbook serve --config FILE\n  needs DATABASE_URL; exit code 78 where the file has mistakes\n' +
      '  SIGHUP loads prices, rates, policies and tokens anew; SIGTERM finishes what was taken',
    load: () => import('./commands/serve.ts'),
  },
  migrate: {
    summary: 'brings the database up to this version',
    usage: 'tollbook migrate\n  needs DATABASE_URL',
    load: () => import('./commands/migrate.ts'),
  },
  'config check': {
    summary: 'checks a configuration and names every mistake',
    usage: 'tollbook config check FILE\n  exit code 0, or 78 where the file has mistakes',
    load: () => import('./commands/config/check.ts'),
  },
  'auth-dry-run': {
    summary: 'signs a request as a caller and asks what a restricted job would say to it',
    usage:
      "tollbook auth-dry-run SERVICE JOB 'BODY' [--url http://127.0.0.1:8402] [--key-file FILE] [--nonce TEXT] [--ttl-secs 300]\n" +
      '  the key is read from TOLLBOOK_CALLER_KEY or from the file, never from an argument;\n' +
      '  settles nothing, uses no nonce up; exit code 0 where the request would be allowed, else 1',
    load: () => import('./commands/auth-dry-run.ts'),
  },
  settlements: {
    summary: 'lists the payments whose settlement nobody knows the outcome of',
    usage: 'tollbook settlements\n  needs DATABASE_URL',
    load: () => import('./commands/settlements/list.ts'),
  },
  'settlements resolve': {
    summary: "records an operator's decision on an open settlement, with its evidence",
    usage:
      "tollbook settlements resolve QUOTE_DIGEST (--paid TRANSACTION | --unpaid) --evidence 'TEXT' --by NAME [--config FILE]\n" +
      '  with --config the chain is asked too, and must not say otherwise; needs DATABASE_URL',
    load: () => import('./commands/settlements/resolve.ts'),
  },
  'refunds due': {
    summary: 'lists the payments whose money is owed back',
    usage: 'tollbook refunds due\n  paid, and its call is a dead letter or never was; needs DATABASE_URL',
    load: () => import('./commands/refunds/due.ts'),
  },
  'refunds record': {
    summary: 'records that a transaction gave a payment back, once the chain shows it',
    usage:
      'tollbook refunds record --quote-digest DIGEST --tx TRANSACTION (--rpc NETWORK=URL | --config FILE)\n' +
      '  [--payment NONCE] [--goodwill] [--by NAME]\n' +
      '  the whole amount, of the same token, to the payer, from any account; the transaction must be final\n' +
      '  --payment   which one, where the quote was paid more than once\n' +
      '  --goodwill  though its call was completed, or still may be\n' +
      '  --by        who says so; your account on this machine where left out; needs DATABASE_URL',
    load: () => import('./commands/refunds/record.ts'),
  },
  'sweeps record': {
    summary: 'records that a transaction moved income away from where it is paid to',
    usage:
      'tollbook sweeps record --network eip155:8453 --tx TRANSACTION (--rpc NETWORK=URL | --config FILE)\n' +
      '  [--not-a-refund] [--by NAME]\n' +
      '  tokens that nobody paid with yet are known from the configuration alone\n' +
      '  --not-a-refund  though it gives a payer exactly what is owed back\n' +
      '  --by            who says so; your account on this machine where left out; needs DATABASE_URL',
    load: () => import('./commands/sweeps/record.ts'),
  },
  'sweeps list': {
    summary: 'lists the recorded sweeps, the newest first',
    usage: 'tollbook sweeps list\n  needs DATABASE_URL',
    load: () => import('./commands/sweeps/list.ts'),
  },
  'calls dead': {
    summary: 'lists the calls that could not be delivered',
    usage: 'tollbook calls dead\n  needs DATABASE_URL',
    load: () => import('./commands/calls/dead.ts'),
  },
  'calls requeue': {
    summary: 'puts a dead-lettered call back in the queue',
    usage: 'tollbook calls requeue CALL_ID\n  needs DATABASE_URL',
    load: () => import('./commands/calls/requeue.ts'),
  },
  'tokens create': {
    summary: "makes an operator's bearer token",
    usage:
      'tollbook tokens create NAME --scope audit:read [--scope calls:read] … [--days N]\n' +
      `  scopes: ${operatorScopes.join(' ')}\n` +
      '  prints the token once; needs DATABASE_URL',
    load: () => import('./commands/tokens/create.ts'),
  },
  'tokens list': {
    summary: 'lists the operator tokens, never the tokens themselves',
    usage: 'tollbook tokens list\n  needs DATABASE_URL',
    load: () => import('./commands/tokens/list.ts'),
  },
  'tokens revoke': {
    summary: 'ends a token, in every process at once',
    usage: 'tollbook tokens revoke ID\n  needs DATABASE_URL',
    load: () => import('./commands/tokens/revoke.ts'),
  },
  'keys create': {
    summary: 'makes an API key for model chat, and opens its account',
    usage:
      'tollbook keys create --account NAME [--name TEXT] [--models a,b] [--cap 5.00] [--days N]\n' +
      '  --models  the models it may use; all of them where left out\n' +
      '  --cap     what it may spend in all; as much as the account has where left out\n' +
      '  prints the key once; needs DATABASE_URL',
    load: () => import('./commands/keys/create.ts'),
  },
  'keys list': {
    summary: 'lists the API keys, never the keys themselves',
    usage: 'tollbook keys list [--account NAME]\n  needs DATABASE_URL',
    load: () => import('./commands/keys/list.ts'),
  },
  'keys revoke': {
    summary: 'ends an API key, in every process at once',
    usage: 'tollbook keys revoke ID\n  needs DATABASE_URL',
    load: () => import('./commands/keys/revoke.ts'),
  },
  'credit grant': {
    summary: 'gives an account credit for model chat',
    usage:
      'tollbook credit grant ACCOUNT AMOUNT [--id ID]\n  an amount such as 5.00, in the currency; needs DATABASE_URL\n' +
      '  --id  a name for this grant, 16 characters or more: sent again under it, nothing more is given',
    load: () => import('./commands/credit/grant.ts'),
  },
  'credit expire': {
    summary: 'takes credit away that is not held',
    usage:
      'tollbook credit expire ACCOUNT AMOUNT [--id ID]\n  all of it or nothing, and under one id once; needs DATABASE_URL',
    load: () => import('./commands/credit/expire.ts'),
  },
  'credit list': {
    summary: 'lists the accounts with their balance, what is held, and what they used',
    usage: 'tollbook credit list\n  needs DATABASE_URL',
    load: () => import('./commands/credit/list.ts'),
  },
  'spend list': {
    summary: 'lists the earned spends that could not be claimed so far, or are lost',
    usage: 'tollbook spend list\n  needs DATABASE_URL',
    load: () => import('./commands/spend/list.ts'),
  },
  export: {
    summary: 'writes the ledger out, to the byte, or the books of a period for accountants',
    usage:
      'tollbook export [--format jsonl] [--from-seq N] [--out FILE]\n' +
      '  a line an event, the leaf bytes as they are sealed, then the counters; with --from-seq --out is continued\n' +
      `tollbook export --format ${bookFormats.join('|')} --from 2026-11 --to 2026-12 [--out FILE]\n` +
      '  [--input EXPORT [--exported-at 2026-12-01T08:00:00Z]]\n' +
      '  the books of a period that is over, --from in it and --to not, in UTC: months, days or RFC 3339 times;\n' +
      '  journals stand on their own, with balances brought forward and asserted on either end;\n' +
      '  what is recorded late is in the period of its recording, so the same period is the same bytes for ever\n' +
      '  needs DATABASE_URL, or with --input a file of --format jsonl; --exported-at says when that was made,\n' +
      '  where no event in it is from after the period',
    load: () => import('./commands/export.ts'),
  },
  reconcile: {
    summary: 'holds the ledger of a period against the chains: every payment, every transfer, every balance',
    usage:
      'tollbook reconcile --from 2026-11 --to 2026-12 (--rpc NETWORK=URL --pubkey KEY | --config FILE) [--json FILE|-]\n' +
      '  from the database that DATABASE_URL names, at the newest head of its log; what is found is kept there\n' +
      'tollbook reconcile --from … --to … --input EXPORT --checkpoint FILE --pubkey KEY --rpc NETWORK=URL\n' +
      '  from an export alone\n' +
      '  --size N             the head of N events instead of the newest\n' +
      '  --block NETWORK=N    look no further than that block; needed to repeat a period that was not final yet\n' +
      '  --twice              ask for every log a second time\n' +
      '  --resume FILE        keep what was read there, and go on from it\n' +
      '  exit code 0 where all agrees or is only open, 1 on a break, 2 where something could not be read: then nothing is kept',
    load: () => import('./commands/reconcile.ts'),
  },
  verify: {
    summary: 'verifies an export with checkpoints and the public key alone, or the database',
    usage:
      'tollbook verify EXPORT --checkpoint OLD --checkpoint NEW --pubkey KEY\n' +
      '  as many checkpoints as there are, or a folder of them; the key as text or in a file\n' +
      'tollbook verify [--checkpoint FILE] [--pubkey KEY]\n' +
      '  verifies the database that DATABASE_URL names\n' +
      '  exit code 0 where all is sound, 1 where not: the first wrong event is named',
    load: () => import('./commands/verify.ts'),
  },
  'log key': {
    summary: 'makes a key to seal the ledger with',
    usage:
      'tollbook log key ORIGIN\n  prints the secret seed, and beside it the public key that auditors get',
    load: () => import('./commands/log/key.ts'),
  },
  'projections rebuild': {
    summary: 'makes what finance reads anew from the events, while everything goes on',
    usage: 'tollbook projections rebuild\n  needs DATABASE_URL',
    load: () => import('./commands/projections/rebuild.ts'),
  },
  'runners resume': {
    summary: 'lets calls go to a runner that answered 410 again',
    usage: 'tollbook runners resume NAME\n  needs DATABASE_URL',
    load: () => import('./commands/runners/resume.ts'),
  },
};
