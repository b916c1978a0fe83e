import { describe, expect, test } from 'vitest';
import { breakEvents } from '../../../src/ledger/rules/break-events.ts';
import { callEvents } from '../../../src/ledger/rules/call-events.ts';
import { chatEvents } from '../../../src/ledger/rules/chat-events.ts';
import { creditEvents } from '../../../src/ledger/rules/credit-events.ts';
import { counterNames, type EventDescriptor } from '../../../src/ledger/rules/descriptor.ts';
import { eventDescriptors, eventTypes, typesListing } from '../../../src/ledger/rules/event.ts';
import { consoleEvents } from '../../../src/ledger/rules/console-events.ts';
import { costEvents } from '../../../src/ledger/rules/cost-events.ts';
import { identityEvents } from '../../../src/ledger/rules/identity-events.ts';
import { invoiceEvents } from '../../../src/ledger/rules/invoice-events.ts';
import { operatorEvents } from '../../../src/ledger/rules/operator-events.ts';
import { paymentEvents } from '../../../src/ledger/rules/payment-events.ts';
import { periodEvents } from '../../../src/ledger/rules/period-events.ts';
import { rateEvents } from '../../../src/ledger/rules/rate-events.ts';
import { recoveryEvents } from '../../../src/ledger/rules/recovery-events.ts';
import { requestEvents } from '../../../src/ledger/rules/request-events.ts';
import { retentionEvents } from '../../../src/ledger/rules/retention-events.ts';
import { spendEvents } from '../../../src/ledger/rules/spend-events.ts';
import { refundEvents } from '../../../src/ledger/rules/refund-events.ts';
import { transferEvents } from '../../../src/ledger/rules/transfer-events.ts';
import { triggerEvents } from '../../../src/ledger/rules/trigger-events.ts';

const descriptorOf = (type: keyof typeof eventDescriptors): EventDescriptor => eventDescriptors[type];

describe('the event descriptors', () => {
  test('belong to one family each: no type is defined twice', () => {
    const families = [
      paymentEvents,
      callEvents,
      recoveryEvents,
      requestEvents,
      operatorEvents,
      consoleEvents,
      transferEvents,
      refundEvents,
      costEvents,
      breakEvents,
      periodEvents,
      invoiceEvents,
      chatEvents,
      creditEvents,
      identityEvents,
      spendEvents,
      retentionEvents,
      rateEvents,
      triggerEvents,
    ];
    expect(families.flatMap((family) => Object.keys(family)).toSorted()).toEqual(eventTypes.toSorted());
  });

  test('feed the credit read model with every event that moves credit, and with new accounts', () => {
    const moving = eventTypes.filter((type) => descriptorOf(type).credit !== 'none');
    expect(typesListing('readModels', 'credit').toSorted()).toEqual(
      [...moving, 'credit_account_opened'].toSorted(),
    );
  });

  test('give every public counter at least one event type', () => {
    expect(counterNames.filter((name) => typesListing('counters', name).length === 0)).toEqual([]);
  });

  test('reconcile and project every event that moves a payment or call to another state', () => {
    const moving = eventTypes.filter((type) => {
      const { transition } = descriptorOf(type);
      return (transition.of === 'payment' || transition.of === 'call') && transition.to !== undefined;
    });
    const projected = typesListing('readModels', 'payments');
    expect(moving.filter((type) => descriptorOf(type).quoteState === 'none')).toEqual([]);
    expect(moving.filter((type) => descriptorOf(type).reconciliation === 'none')).toEqual([]);
    expect(moving.filter((type) => !projected.includes(type))).toEqual([]);
  });
});
