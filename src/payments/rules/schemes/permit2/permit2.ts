import { permitDigestFor, toMember, validAfterMember } from './permit-digest.ts';
import { createPermit2Scheme } from './permit2-scheme.ts';
import { exactProxyAddress, type PermitTerms, permitTypedData } from './signature-transfer.ts';

/** What a payer signs (EIP-712): the transfer of exactly this amount to this payee, by x402's contract alone. */
export function permit2TypedData(payment: PermitTerms) {
  const { payTo, validAfter } = payment;
  return permitTypedData(
    exactProxyAddress,
    payment,
    [
      { name: 'to', type: 'address' },
      { name: 'validAfter', type: 'uint256' },
    ],
    { to: payTo, validAfter },
  );
}

/** `exact` with Permit2: anyone may submit the transfer, through x402's contract alone. */
export const permit2 = createPermit2Scheme({
  x402Scheme: 'exact',
  proxyAddress: exactProxyAddress,
  namesSubmitter: false,
  digest: permitDigestFor(exactProxyAddress, [toMember, validAfterMember]),
  ownReasonsBeforeBroadcast: [],
});
