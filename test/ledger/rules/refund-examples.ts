import { bytesOf, option, payer } from '../../payments/rules/support.ts';

const transaction = bytesOf('f6', 32);

const ofPayment = {
  network: 'eip155:84532',
  asset: option.asset,
  payer,
  payment_nonce: bytesOf('d4', 32),
};

/** Of a refund that a wallet sends, what its transaction cost, and an invoice. */
export const refundExamples = {
  operator_attestation_recorded: {
    size: 41,
    note: `audit.example/tollbook\n41\n${'A'.repeat(43)}=\nrefunds-due 1 ${'B'.repeat(43)}=\n\n— audit.example/tollbook AAAA\n`,
    operator: 'ada',
  },
  refund_started: {
    ...ofPayment,
    amount: '10000',
    refund_to: payer,
    sender: option.payTo,
    sender_nonce: 7,
    since_block: '12345',
    evidence: 'the bank says so',
    operator: 'ada',
  },
  refund_sent: { ...ofPayment, transaction, sender: option.payTo, sender_nonce: 7, operator: 'ada' },
  refund_not_sent: { ...ofPayment, why: 'the wallet was closed', operator: 'ada' },
  refund_abandoned: {
    ...ofPayment,
    proof: 'nonce_spent',
    block_number: '12345',
    block_hash: bytesOf('77', 32),
    why: 'the wallet was closed',
    operator: 'bob',
  },
  refund_requested: { ...ofPayment, reason_sha256: bytesOf('4e', 32), signature: bytesOf('51', 65) },
  refund_request_granted: { ...ofPayment, operator: 'ada' },
  refund_request_declined: { ...ofPayment, why: 'the answer is right', operator: 'ada' },
  transaction_cost_recorded: {
    network: 'eip155:84532',
    transaction,
    purpose: 'refund',
    payer: option.payTo,
    symbol: 'ETH',
    gas_used: '52301',
    gas_price_wei: '1000000007',
    l1_fee_wei: '91',
    block_number: '12345',
    block_hash: bytesOf('77', 32),
    block_time: 1_796_000_000,
    operator: 'ada',
  },
  operator_cost_reversed: {
    network: 'eip155:84532',
    transaction,
    purpose: 'refund',
    payer: option.payTo,
    symbol: 'ETH',
    gas_used: '52301',
    gas_price_wei: '1000000007',
    l1_fee_wei: '91',
    why: 'somebody else paid for it',
    operator: 'ada',
  },
  operator_invoice_issued: {
    series: '2026',
    number: 1,
    customer: 'acme',
    from_ms: Date.parse('2026-10-01'),
    to_ms: Date.parse('2026-11-01'),
    close_seq: 41,
    currency: 'EUR',
    decimals: 2,
    gross: '11900',
    tax: '1900',
    document_sha256: bytesOf('43', 32),
    operator: 'ada',
  },
} as const;
