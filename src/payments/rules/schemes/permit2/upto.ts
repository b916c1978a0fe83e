import { facilitatorMember, permitDigestFor, toMember, validAfterMember } from './permit-digest.ts';
import { zeroAddress } from '../../quote.ts';
import { createPermit2Scheme } from './permit2-scheme.ts';
import { type PermitTerms, permitTypedData, uptoProxyAddress } from './signature-transfer.ts';

/** What a payer signs (EIP-712): the transfer of at most this amount to this payee, as one facilitator says, by x402's contract alone. */
export function uptoTypedData(payment: PermitTerms) {
  const { payTo, validAfter, submitter = zeroAddress } = payment;
  return permitTypedData(
    uptoProxyAddress,
    payment,
    [
      { name: 'to', type: 'address' },
      { name: 'facilitator', type: 'address' },
      { name: 'validAfter', type: 'uint256' },
    ],
    { to: payTo, facilitator: submitter, validAfter },
  );
}

/** `upto`: the payer signs the most, and the facilitator that the payer names moves what was used, once. */
export const upto = createPermit2Scheme({
  x402Scheme: 'upto',
  proxyAddress: uptoProxyAddress,
  namesSubmitter: true,
  digest: permitDigestFor(uptoProxyAddress, [toMember, facilitatorMember, validAfterMember]),
  ownReasonsBeforeBroadcast: [
    'invalid_upto_evm_network_mismatch',
    'invalid_upto_evm_payload_settlement_exceeds_amount',
    'invalid_upto_evm_scheme',
    'upto_amount_exceeds_permitted',
    'upto_facilitator_mismatch',
    'upto_unauthorized_facilitator',
  ],
});
