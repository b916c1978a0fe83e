import { requireSealedHelp } from './book-commands.ts';

const changedRows =
  'the events are not those that were sealed, or the read models say something else: somebody has changed them';

/** The commands of refunds, sweeps and transfers that are no payment. */
export const transferCommands = {
  'refunds due': {
    isReading: true as const,
    summary: 'lists the payments with a refund due',
    usage:
      `tollbook refunds due [--require-sealed [--pubkey KEY]]\n${requireSealedHelp}` +
      '  a refund is due where a payment has a dead-lettered call or none; needs DATABASE_URL',
    exits: { finding: changedRows },
    load: () => import('../../finance/commands/refunds/due.ts'),
  },
  'refunds batch': {
    summary: 'starts the refunds that are due on a network, and writes them as one batch for a wallet',
    usage:
      'tollbook refunds batch --network eip155:8453 --out FILE (--rpc NETWORK=URL | --config FILE) [--safe FILE]\n' +
      '  [--from ADDRESS [--nonce N]] [--max 100] [--by NAME] [--require-sealed [--pubkey KEY]]\n' +
      '  --rpc    the chain is asked for each payment: it must be in a final block\n' +
      '  --out    the batch: a call for each refund, and the payment that it refunds; `refunds record --batch` reads it\n' +
      '  --safe   the same calls for the transaction builder of a Safe, as one transaction\n' +
      '  --from   the account or Safe that sends the batch, and no other one does\n' +
      '  --nonce  its nonce for the first refund: the next ones have the next ones, those of a Safe all the same. What is sent under no\n' +
      '           other nonce is given up by the chain alone, with `refunds abandon`; else two operators have to say that it was not sent.\n' +
      '           The same again writes a file again that was lost, and starts no other refund\n' +
      '  --by     the operator; default: your account on this machine\n' +
      requireSealedHelp +
      '  each refund is recorded as started: its call is not delivered, and no other batch has it; needs DATABASE_URL',
    exits: { finding: changedRows },
    load: () => import('../../finance/commands/refunds/batch.ts'),
  },
  'refunds abandon': {
    summary: 'gives refunds up that were started and cannot land any more: they stay due',
    usage:
      'tollbook refunds abandon (--batch FILE | --quote-digest DIGEST --payment NONCE) (--rpc NETWORK=URL | --config FILE)\n' +
      "  [--why 'TEXT'] [--by NAME]\n" +
      '  the chain proves it: the transaction failed, or its nonce was spent by another one, in a final block\n' +
      '  --why  how you know that it was not sent, where the chain cannot prove it: two operators have to say so\n' +
      '  --by   the operator; default: your account on this machine; needs DATABASE_URL',
    load: () => import('../../finance/commands/refunds/abandon.ts'),
  },
  'refunds record': {
    summary: 'records the transaction that refunded a payment or a part of it, once it is final on the chain',
    usage:
      'tollbook refunds record --quote-digest DIGEST --tx TRANSACTION (--rpc NETWORK=URL | --config FILE)\n' +
      "  [--payment NONCE] [--amount ATOMS] [--to ADDRESS --evidence 'TEXT'] [--goodwill] [--by NAME]\n" +
      '  the transaction transfers what is left of the payment, in its token, to the payer, from any account\n' +
      '  --payment   the nonce of the payment, which is compared with that of the quote\n' +
      '  --amount    a part of what is left; the rest stays due\n' +
      "  --to        another address than the payer's, with --evidence of why\n" +
      '  --goodwill  records it although the call was completed or may still be\n' +
      'tollbook refunds record --batch FILE --tx TRANSACTION... (--rpc NETWORK=URL | --config FILE) [--by NAME]\n' +
      '  records each refund of the batch that the transactions have paid, and names those that are missing: then it is not done\n' +
      '  --by        the operator; default: your account on this machine; needs DATABASE_URL',
    load: () => import('../../finance/commands/refunds/record.ts'),
  },
  'sweeps record': {
    summary: 'records a transfer of income from a payee to another account of the operator',
    usage:
      'tollbook sweeps record --network eip155:8453 --tx TRANSACTION (--rpc NETWORK=URL | --config FILE)\n' +
      '  [--not-a-refund] [--by NAME]\n' +
      '  a token without payments must be in the configuration\n' +
      '  --not-a-refund  records it although it matches a due refund\n' +
      '  --by            the operator; default: your account on this machine; needs DATABASE_URL',
    load: () => import('../../finance/commands/sweeps/record.ts'),
  },
  'sweeps list': {
    isReading: true as const,
    summary: 'lists the recorded sweeps, the newest first',
    usage:
      'tollbook sweeps list [--from 2026-11] [--to 2026-12] [--tz Europe/Berlin]\n' +
      '  those recorded from --from until before --to; --tz: the zone of days and times; needs DATABASE_URL',
    load: () => import('../../finance/commands/sweeps/list.ts'),
  },
  'sweeps payments': {
    isReading: true as const,
    summary: 'lists the payments that a sweep carried away',
    usage:
      'tollbook sweeps payments --tx TRANSACTION [--log INDEX] [--csv]\n' +
      '  all of its token and payee since the sweep before it, by their blocks; needs DATABASE_URL',
    load: () => import('../../finance/commands/sweeps/payments.ts'),
  },
  'transfers record': {
    summary: 'records what a transfer to a payee is that no payment explains',
    usage:
      'tollbook transfers record --network eip155:8453 --tx TRANSACTION (--suspense | --income | --returned-by TX | --own)\n' +
      '  (--rpc NETWORK=URL | --config FILE) [--log INDEX] [--by NAME]\n' +
      '  --suspense     nobody knows yet whose it is; it can be recorded as income or as returned later\n' +
      '  --income       it is kept\n' +
      '  --returned-by  the transaction that gave the whole amount back to its sender\n' +
      "  --own          the operator's money: from a payee to itself, or from another account of the operator\n" +
      '  --log          the transfer, if the transaction has several\n' +
      '  --by           the operator; default: your account on this machine; needs DATABASE_URL',
    load: () => import('../../finance/commands/transfers/record.ts'),
  },
  'transfers reverse': {
    summary: 'takes back what was recorded of such a transfer, so that it can be recorded rightly',
    usage:
      "tollbook transfers reverse --network eip155:8453 --tx TRANSACTION --why 'TEXT' [--log INDEX] [--by NAME]\n" +
      '  who and why are on record; needs DATABASE_URL',
    load: () => import('../../finance/commands/transfers/reverse.ts'),
  },
  'transfers list': {
    isReading: true as const,
    summary: 'lists what was recorded of such transfers, the newest first',
    usage:
      'tollbook transfers list [--from 2026-11] [--to 2026-12] [--tz Europe/Berlin]\n' +
      '  those recorded from --from until before --to; --tz: the zone of days and times; needs DATABASE_URL',
    load: () => import('../../finance/commands/transfers/list.ts'),
  },
} as const;
