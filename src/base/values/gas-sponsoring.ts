import { z } from 'zod';

/**
 * x402's extensions in which a payer by Permit2 signs its approval of Permit2 instead of sending it: the facilitator submits that before it
 * settles the payment, and pays its gas.
 */
export const gasSponsoringKeys = ['eip2612GasSponsoring', 'erc20ApprovalGasSponsoring'] as const;
export type GasSponsoringKey = (typeof gasSponsoringKeys)[number];

const decimal = /^(?:0|[1-9]\d{0,77})$/;
/** A signature of 65 bytes, and a signed transaction that calls `approve`: 111 bytes of fixed size, and numbers. */
const [signature, transaction] = [/^0x[0-9a-fA-F]{130}$/, /^0x(?:[0-9a-fA-F]{2}){1,512}$/];

/** What differs between two payments that carry the extension: the payer, the token and Permit2 are the payment's. */
export const signedApproval = z.union([
  z.strictObject({
    eip2612: z.strictObject({
      amount: z.string().regex(decimal),
      nonce: z.string().regex(decimal),
      deadline: z.string().regex(decimal),
      signature: z.string().regex(signature),
    }),
  }),
  z.strictObject({
    erc20_approval: z.strictObject({
      amount: z.string().regex(decimal),
      signed_transaction: z.string().regex(transaction),
    }),
  }),
]);
export type SignedApproval = z.infer<typeof signedApproval>;

/** Whose approval it is, of which token, for which contract. */
export interface Approval {
  readonly from: string;
  readonly asset: string;
  readonly spender: string;
}

const carried = z.object({
  info: z.object({ from: z.string(), asset: z.string(), spender: z.string() }).loose(),
});

/** The approval that a payment carries in its extensions; undefined if there is none of this payer, token and spender in the usual form. */
export function readSignedApproval(
  extensions: Readonly<Record<string, unknown>>,
  approval: Approval,
): SignedApproval | undefined {
  for (const key of gasSponsoringKeys) {
    const info = carried.safeParse(extensions[key]).data?.info;
    if (!info || !isOf(info, approval)) continue;
    const { amount, nonce, deadline, signature: signed, signedTransaction } = info;
    const read = signedApproval.safeParse(
      key === 'eip2612GasSponsoring'
        ? { eip2612: { amount, nonce, deadline, signature: signed } }
        : { erc20_approval: { amount, signed_transaction: signedTransaction } },
    );
    if (read.success) return read.data;
  }
  return undefined;
}

function isOf(info: Approval, { from, asset, spender }: Approval): boolean {
  return (
    info.from.toLowerCase() === from.toLowerCase() &&
    info.asset.toLowerCase() === asset.toLowerCase() &&
    info.spender.toLowerCase() === spender.toLowerCase()
  );
}

/** The extensions of a payment with this approval, as a facilitator reads them. */
export function approvalExtensions(signed: SignedApproval, { from, asset, spender }: Approval) {
  const of = { from, asset, spender, version };
  if ('eip2612' in signed) return { eip2612GasSponsoring: { info: { ...of, ...signed.eip2612 } } };
  const { amount, signed_transaction: signedTransaction } = signed.erc20_approval;
  return { erc20ApprovalGasSponsoring: { info: { ...of, amount, signedTransaction } } };
}

const version = '1';
const text = (pattern: string) => ({ type: 'string', pattern });
const [addressText, numberText] = [text('^0x[a-fA-F0-9]{40}$'), text('^[0-9]+$')];
const hexText = text('^0x[a-fA-F0-9]+$');

function entry(description: string, properties: Readonly<Record<string, object>>) {
  const all = {
    from: addressText,
    asset: addressText,
    spender: addressText,
    amount: numberText,
    ...properties,
  };
  const named = { ...all, version: text('^[0-9]+(\\.[0-9]+)*$') };
  const schema = { $schema: 'https://json-schema.org/draft/2020-12/schema', type: 'object' };
  return {
    info: { description, version },
    schema: { ...schema, properties: named, required: Object.keys(named) },
  };
}

const entries: Readonly<Record<GasSponsoringKey, object>> = {
  eip2612GasSponsoring: entry('The facilitator submits an EIP-2612 permit of the payer for Permit2.', {
    nonce: numberText,
    deadline: numberText,
    signature: hexText,
  }),
  erc20ApprovalGasSponsoring: entry("The facilitator submits the payer's signed approval of Permit2.", {
    signedTransaction: hexText,
  }),
};

/** The extensions of an offer that say which approvals the facilitator submits. */
export function offeredApprovals(keys: readonly GasSponsoringKey[]): Readonly<Record<string, object>> {
  return Object.fromEntries(keys.map((key) => [key, entries[key]]));
}
