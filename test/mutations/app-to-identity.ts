import type { MutationRow } from './mutation.ts';

/** The first twenty. */
export const fromAppToIdentity: readonly MutationRow[] = [
  {
    name: 'quiet-gateway-drains-late',
    file: 'src/app/quiet-gateway.ts',
    find: 'isDraining: () => draining || stopping,',
    replace: 'isDraining: () => draining && stopping,',
    testFile: 'test/finance/use-cases/recovery/quiet.test.ts',
    testName: 'a quiet gateway that drains says so to its load balancer, and still serves reads',
  },
  {
    name: 'books-complete-a-moment-later',
    file: 'src/finance/use-cases/books/source.ts',
    find: 'isCompleteTo: (toMs) => toMs <= nowMs,',
    replace: 'isCompleteTo: (toMs) => toMs < nowMs,',
    testFile: 'test/finance/use-cases/books/source.test.ts',
    testName:
      'a ledger has all events before the moment of its read or export, and is not said to have any later ones',
  },
  {
    name: 'completion-is-not-recorded',
    file: 'src/chat/use-cases/settle-chat.ts',
    find: `recordInBackground(context, chat, async () => {
    const { usage, written } = end.progress;
    const counted = usage ?? (await estimateAside(chat.prompt, written));
    const cost = costOf(chat, counted);
    const isWhole = end.ending === 'completed';
    if (chat.caller.kind === 'x402') chat.caller.order.onEnd({ costMicros: cost.captured, isWhole });
    if (isWhole) noteLength(context, chat, counted);
    await record(context, chat, completedStep(chat, end, { ...counted, ...cost }, usage === undefined));
    const problem = end.progress.isUsageMalformed
      ? 'malformed'
      : cost.uncovered > 0n
        ? 'above_hold'
        : undefined;
    if (problem)
      await context.usageAlert({
        chat_id: chat.chatId,
        upstream: end.upstream,
        model: chat.model.name,
        problem,
      });
  });`,
    replace: '',
    testFile: 'test/chat/http/completions.test.ts',
    testName: `OpenAI's client gets a completion, and its account is charged the cost`,
  },
  {
    name: 'one-explained-break-is-not-said',
    file: 'src/finance/terminal/reconcile-table.ts',
    find: `return explained > 0 && explained < breaks ? \`, \${explained} of them explained\` : '';`,
    replace: `return explained > 1 && explained < breaks ? \`, \${explained} of them explained\` : '';`,
    testFile: 'test/app/cli/explain.test.ts',
    testName:
      'a break that is explained stays so in every later run, and the exit code tells explained from open',
  },
  {
    name: 'missing-value-is-called-wrong',
    file: 'src/base/config/table.ts',
    find: `if (raw === undefined) report.mistake(at, 'is missing');`,
    replace: `if (raw !== undefined) report.mistake(at, 'is missing');`,
    testFile: 'test/base/config/top-ups.test.ts',
    testName: 'are refused at a rate of zero, with their line',
  },
  {
    name: 'console-links-to-what-a-role-cannot-see',
    file: 'src/web/console/layout.ts',
    find: `const links = site.sections
    .filter(({ role = 'viewer' }) => includesRole(held, role))`,
    replace: 'const links = site.sections',
    testFile: 'test/web/console/roles.test.ts',
    testName: 'the list of operators is for admins: viewer',
  },
  {
    name: 'cost-is-recorded-twice',
    file: 'src/payments/use-cases/costs/record-cost.ts',
    find: `if (last?.type === 'transaction_cost_recorded') return { kind: 'repeated', cost: last.data };`,
    replace: '',
    testFile: 'test/finance/use-cases/costs/record-missing.test.ts',
    testName: `\`costs record --missing\` records the cost of every transaction of the operator that the ledger names, once, and names those that it could not record`,
  },
  {
    name: 'token-of-a-grant-is-left-out',
    file: 'src/accounts/use-cases/credit/credit.ts',
    find: '...(tokenId === undefined ? {} : { token_id: tokenId }),',
    replace: '...(tokenId !== undefined ? {} : { token_id: tokenId }),',
    testFile: 'test/chat/http/operator-credit.test.ts',
    testName: 'an operator creates a key and grants credit, and the key buys completions until it is revoked',
  },
  {
    name: 'devnet-mints-nothing',
    file: 'src/devnet/deploy.ts',
    find: 'await callAs(chain, generatePrivateKey(), call);',
    replace: '',
    testFile: 'test/devnet/registry.test.ts',
    testName: 'the registry is deployed at one address, on an older chain too, and keeps its changes',
  },
  {
    name: 'period-may-have-an-empty-head',
    file: 'src/ledger/rules/period-events.ts',
    find: 'size: count.min(1),',
    replace: 'size: count.min(0),',
    testFile: 'test/ledger/rules/event.test.ts',
    testName: 'is refused with a close at the head of an empty log',
  },
  {
    name: 'totp-secret-gets-a-letter',
    file: 'src/accounts/rules/totp.ts',
    find: `return bits === 0 ? text : text + (alphabet[(value << (5 - bits)) & 31] ?? '');`,
    replace: `return bits !== 0 ? text : text + (alphabet[(value << (5 - bits)) & 31] ?? '');`,
    testFile: 'test/accounts/rules/totp.test.ts',
    testName: 'an authenticator app reads issuer, name and secret of the address',
  },
  {
    name: 'refusals-of-operators-exchanged',
    file: 'src/accounts/http/operator-access.ts',
    find: `operator ? 'forbidden' : 'unauthorized'`,
    replace: `operator ? 'unauthorized' : 'forbidden'`,
    testFile: 'test/app/openapi/rights.test.ts',
    testName:
      'no operation that needs credentials answers a request without them, and none for operators answers one whose token lacks the right',
  },
  {
    name: 'stream-answers-at-once',
    file: 'src/jobs/http/receipt.ts',
    find: 'if (waitSecs === 0 && !isStream) {',
    replace: 'if (waitSecs === 0 || !isStream) {',
    testFile: 'test/jobs/use-cases/await-receipt.test.ts',
    testName:
      'a receipt that is waited for comes with its result when a runner of another gateway has completed the call',
  },
  {
    name: 'remaining-completions-are-never-none',
    file: 'src/app/openapi/headers.ts',
    find: `'Completions that are still allowed in this window.', 0`,
    replace: `'Completions that are still allowed in this window.', 1`,
    testFile: 'test/chat/http/completion-limits.test.ts',
    testName:
      'the last completion of a minute and the refusal after it have the limit headers that the document describes',
  },
  {
    name: 'unnamed-sender-is-a-known-device',
    file: 'src/accounts/use-cases/password-queue.ts',
    find: `const unnamed: PasswordSender = { client: '', isKnownDevice: false };`,
    replace: `const unnamed: PasswordSender = { client: '', isKnownDevice: true };`,
    testFile: 'test/accounts/use-cases/password-queue.test.ts',
    testName: 'a password whose sender is not known has no place before known devices',
  },
];
