import { costPurposes } from '../../base/values/transaction-cost.ts';
import {
  by,
  byName,
  type CommandDescription,
  config,
  flag,
  rpc,
  text,
  textOr,
  texts,
  why,
  zone as tz,
} from '../../base/terminal/command.ts';
import { attestedBy, chains, databaseSealed, evidence, log, network, tx, valued } from './options.ts';

const changedRows =
  'the events are not those that were sealed, or the read models say something else: somebody has changed them';

/** Options of the commands that record facts from a chain. */
const transfer = { tx, ...chains, by };
const chainForms = (form: string) => [`${form} --rpc NETWORK=URL`, `${form} --config FILE`];

const list = {
  isReading: true,
  options: {
    from: text('2026-11', 'those that were recorded since then'),
    to: text('2026-12', 'those that were recorded before then'),
    tz,
    ...valued,
  },
} as const;

/** The commands of money that has moved: settlements, refunds, sweeps, other transfers, costs; and of recovery. */
export const moneyCommands = {
  recover: {
    summary:
      'continues after the ledger lost events, and records the lost payments that a chain shows as refunds due',
    forms: ['--config FILE --by NAME'],
    options: {
      config,
      by: byName,
      rpc,
      since: text('TIME', 'searches payments since then; default: the time of the last event that was kept'),
      'dry-run': flag('changes nothing'),
      force: flag('also if nothing is wrong'),
    },
    notes: ['stop every gateway first; a recovery that is not finished says so, and is run again'],
  },
  'go-live': {
    summary: 'makes this database the ledger, after a restore or a move: its quiet gateways go live',
    forms: ["--config FILE --by NAME --why 'TEXT'"],
    options: { config, by: byName, why },
    notes: [
      'stop every gateway of the database before first; begins the next generation of the log, and records who and why;',
      'refuses if events are known to be missing: `tollbook recover` continues without them',
    ],
  },
  'settlements resolve': {
    summary: "records an operator's decision on an unknown settlement, with its evidence",
    forms: [
      "QUOTE_DIGEST --paid TRANSACTION --evidence 'TEXT' --by NAME",
      "QUOTE_DIGEST --unpaid --evidence 'TEXT' --by NAME",
    ],
    options: {
      paid: text('TRANSACTION', 'the transaction that paid'),
      'log-index': text('N', "of the transfer's log in its block; needed without --config"),
      unpaid: flag('nothing was paid, and nothing will be'),
      evidence,
      by: byName,
      config: text('FILE', `${config.help}: the chain is checked too, and must not show the opposite`),
    },
  },
  'refunds due': {
    isReading: true,
    summary: 'lists the payments with a refund due',
    options: { ...databaseSealed, ...valued, 'attested-by': attestedBy },
    notes: [
      'a refund is due if a payment has a dead-lettered call or none, or an operator has granted what its payer asked for',
    ],
    exits: { finding: changedRows },
  },
  'refunds requests': {
    isReading: true,
    summary: 'lists the payments whose payer asks for a refund, with its reason',
    options: {},
    notes: ['the reason is what the payer wrote: treat it as untrusted'],
  },
  'refunds grant': {
    summary:
      'grants what the payer of a payment asks for: the refund is due, and a call in the queue is given up',
    forms: ['--quote-digest DIGEST'],
    options: { 'quote-digest': text('DIGEST', 'the quote of the payment'), by },
  },
  'refunds decline': {
    summary: 'declines what the payer of a payment asks for',
    forms: ["--quote-digest DIGEST --why 'TEXT'"],
    options: { 'quote-digest': text('DIGEST', 'the quote of the payment'), why, by },
  },
  'refunds batch': {
    summary: 'starts the refunds that are due on a network, and writes them as one batch for a wallet',
    forms: chainForms('--network NETWORK --out FILE'),
    options: {
      network,
      out: text(
        'FILE',
        'the batch: a call for each refund, and the payment that it refunds;\n`refunds record --batch` reads it',
      ),
      safe: text('FILE', 'the same calls for the transaction builder of a Safe, as one transaction'),
      from: text('ADDRESS', 'the account or Safe that sends the batch, and no other one does'),
      nonce: text(
        'N',
        'its nonce for the first refund: the next ones have the next ones, those of a Safe all the same. What is sent\n' +
          'under no other nonce is given up only by the chain, with `refunds abandon`; else two operators have to say\n' +
          'that it was not sent. The same again writes a file again that was lost, and starts no other refund',
      ),
      max: textOr('N', '100', 'the most refunds of one batch'),
      ...chains,
      by,
      ...databaseSealed,
      'attested-by': attestedBy,
    },
    notes: [
      'the chain is asked for each payment: it must be in a final block;',
      'each refund is recorded as started: its call is not delivered, and no other batch has it',
    ],
    exits: { finding: changedRows },
  },
  'refunds abandon': {
    summary: 'gives refunds up that were started and cannot land any more: they stay due',
    forms: [...chainForms('--batch FILE'), ...chainForms('--quote-digest DIGEST --payment NONCE')],
    options: {
      batch: text('FILE', 'the refunds of a batch'),
      'quote-digest': text('DIGEST', 'one refund, by the quote of its payment'),
      payment: text('NONCE', 'the nonce of that payment'),
      why: text(
        "'TEXT'",
        'how you know that it was not sent, if the chain cannot prove it: two operators have to say so',
      ),
      by,
      ...chains,
    },
    notes: [
      'the chain proves it: the transaction failed, or its nonce was spent by another one, in a final block',
    ],
  },
  'refunds record': {
    summary: 'records the transaction that refunded a payment or a part of it, once it is final on the chain',
    forms: [
      ...chainForms('--quote-digest DIGEST --tx TRANSACTION'),
      ...chainForms('--batch FILE --tx TRANSACTION'),
    ],
    options: {
      ...transfer,
      tx: texts('TRANSACTION', 'its hash; several with --batch'),
      'quote-digest': text('DIGEST', 'the quote of the payment'),
      payment: text('NONCE', 'the nonce of the payment, which is compared with that of the quote'),
      amount: text("'N TOKEN'", "a part of what is left, as '1.50 USDC'; the rest stays due"),
      to: text('ADDRESS', "another address than the payer's, with --evidence of why"),
      evidence,
      goodwill: flag('records it although the call was completed or may still be'),
      batch: text(
        'FILE',
        'records each refund of the batch that the transactions have paid, and names those that are missing: then it is not done',
      ),
    },
    notes: [
      'the transaction transfers what is left of the payment, in its token, to the payer, from any account;',
      'a refund that was started for a nonce of a sender is recorded only by that transaction',
    ],
  },
  'sweeps record': {
    summary: 'records a transfer of income from a payee to another account of the operator',
    forms: chainForms('--network NETWORK --tx TRANSACTION'),
    options: { network, ...transfer, 'not-a-refund': flag('records it although it matches a due refund') },
    notes: ['a token without payments must be in the configuration'],
  },
  'sweeps list': { summary: 'lists the recorded sweeps, the newest first', ...list },
  'sweeps payments': {
    isReading: true,
    summary: 'lists the payments that a sweep carried away',
    forms: ['--tx TRANSACTION'],
    options: { tx, log, csv: flag('as CSV'), ...valued },
    notes: ['all of its token and payee since the sweep before it, by their blocks'],
  },
  'transfers record': {
    summary: 'records what a transfer to a payee is that no payment explains',
    forms: chainForms(
      '--network NETWORK --tx TRANSACTION (--suspense | --income | --returned-by TX | --own)',
    ),
    options: {
      network,
      ...transfer,
      suspense: flag('its owner is not known yet; it can be recorded as income or as returned later'),
      income: flag('it is kept'),
      'returned-by': text('TX', 'the transaction that gave the whole amount back to its sender'),
      own: flag("the operator's money: from a payee to itself, or from another account of the operator"),
      log,
    },
  },
  'transfers reverse': {
    summary: 'reverses the record of an unexplained transfer, so that it can be recorded correctly',
    forms: ["--network NETWORK --tx TRANSACTION --why 'TEXT'"],
    options: { network, tx, log, why, by },
  },
  'transfers list': { summary: 'lists what was recorded of such transfers, the newest first', ...list },
  'costs record': {
    summary: 'records what a transaction of yours cost: a refund, a sweep, a spend or an anchor',
    forms: [
      ...chainForms('--network NETWORK --tx TRANSACTION --purpose PURPOSE'),
      ...chainForms('--missing'),
    ],
    options: {
      network,
      ...transfer,
      purpose: text('PURPOSE', costPurposes.join(', ')),
      payer: text(
        'ADDRESS',
        'the account that sent it: says that it is yours, if neither ledger nor configuration knows it',
      ),
      missing: flag(
        'finds the refunds, sweeps, transfers and spends in the ledger whose transaction has no recorded cost, and records\n' +
          'each; with --config also the anchors that its keys have published on a chain. Where one of them could not be\n' +
          'recorded, or found, it is named, and the command is not done: repeat it',
      ),
      from: text(
        '2026-11',
        "looks for anchors since then; default: the ledger's first event, which reads many blocks of an old ledger",
      ),
    },
    notes: [
      'of its receipt, once it is final; also if it failed. What a command or a gateway has recorded is not recorded again',
    ],
  },
  'costs reverse': {
    summary: 'takes back what was recorded of the cost of a transaction, so that it can be recorded rightly',
    forms: ["--network NETWORK --tx TRANSACTION --why 'TEXT'"],
    options: { network, tx, why, by },
    notes: ['the books have both entries'],
  },
  'costs list': {
    summary: 'lists what your transactions cost, and what of it was reversed, the newest first',
    ...list,
  },
} satisfies Readonly<Record<string, CommandDescription>>;
