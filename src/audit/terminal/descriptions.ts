import { type CommandDescription, text } from '../../base/terminal/command.ts';

/** The commands of the log and the read models. */
export const auditCommands = {
  'log key': {
    noDatabase: true,
    summary: 'creates the key that seals the ledger',
    forms: ['ORIGIN', '--config FILE'],
    options: {
      config: text('FILE', 'prints the public keys of the log, one for each generation; needs DATABASE_URL'),
    },
    notes: ['with ORIGIN it prints the secret seed, and the public key for auditors'],
  },
  'projections rebuild': {
    summary: 'rebuilds the read models of finance from the events while the gateway runs',
    notes: [
      'it compares the rebuilt postings, balances and open items with the former ones, both ways, and names the first differences',
    ],
    exits: {
      finding:
        'the former postings, balances or open items were not those of the events; the rebuilt ones are',
    },
  },
} satisfies Readonly<Record<string, CommandDescription>>;
