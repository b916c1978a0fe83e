import {
  declareEip2612GasSponsoringExtension,
  declareErc20ApprovalGasSponsoringExtension,
  extractEip2612GasSponsoringInfo,
  extractErc20ApprovalGasSponsoringInfo,
  validateEip2612GasSponsoringInfo,
  validateErc20ApprovalGasSponsoringInfo,
} from '@x402/extensions';
import { expect, test } from 'vitest';
import {
  approvalExtensions,
  gasSponsoringKeys,
  offeredApprovals,
  readSignedApproval,
} from '../../../src/base/values/gas-sponsoring.ts';

const addressOf = (byte: string) => `0x${byte.repeat(20)}`;
const of = { from: addressOf('a1'), asset: addressOf('b2'), spender: addressOf('c3') };
const permit = { ...of, amount: '5', nonce: '0', deadline: '1800000000', signature: `0x${'1f'.repeat(65)}` };
const approval = { ...of, amount: '7', signedTransaction: `0x02${'2e'.repeat(120)}` };
const version = '1';
const byPermit = { eip2612GasSponsoring: { info: { ...permit, version, description: 'of the offer' } } };
const byTransaction = { erc20ApprovalGasSponsoring: { info: { ...approval, version } } };

/** A payment that carries the approval of another one again. */
const again = (extensions: object) => {
  const signed = readSignedApproval({ ...extensions }, of);
  return { extensions: signed && approvalExtensions(signed, of) } as never;
};

const requiredOf = (extensions: Readonly<Record<string, unknown>>) =>
  gasSponsoringKeys.map((key) =>
    (extensions[key] as { schema: { required: readonly string[] } }).schema.required.toSorted(),
  );

test('an approval that is passed on again is what the payer sent, as the SDK of facilitators reads it', () => {
  const permitted = extractEip2612GasSponsoringInfo(again(byPermit));
  expect(permitted && validateEip2612GasSponsoringInfo(permitted)).toBe(true);
  expect(permitted).toEqual({ ...permit, version });
  const approved = extractErc20ApprovalGasSponsoringInfo(again(byTransaction));
  expect(approved && validateErc20ApprovalGasSponsoringInfo(approved)).toBe(true);
  expect(approved).toEqual({ ...approval, version });
});

test.each([
  ['of another payer', { from: addressOf('d4') }],
  ['of another token', { asset: addressOf('d4') }],
  ['for another contract', { spender: addressOf('d4') }],
  ['with a longer signature', { signature: `0x${'1f'.repeat(66)}` }],
  ['with an amount that is no number', { amount: '0x5' }],
])('an approval %s is not kept', (_, change) => {
  const info = { ...byPermit.eip2612GasSponsoring.info, ...change };
  expect(readSignedApproval({ eip2612GasSponsoring: { info } }, of)).toBe(undefined);
});

test('a signed transaction of more than 512 bytes is not kept', () => {
  const info = {
    ...byTransaction.erc20ApprovalGasSponsoring.info,
    signedTransaction: `0x${'2e'.repeat(513)}`,
  };
  expect(readSignedApproval({ erc20ApprovalGasSponsoring: { info } }, of)).toBe(undefined);
});

test('an offer asks for the fields that the SDK asks for', () => {
  const declared = {
    ...declareEip2612GasSponsoringExtension(),
    ...declareErc20ApprovalGasSponsoringExtension(),
  };
  expect(requiredOf(offeredApprovals(gasSponsoringKeys))).toEqual(requiredOf(declared));
});
