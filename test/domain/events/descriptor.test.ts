import { describe, expect, test } from 'vitest';
import { breakEvents } from '../../../src/domain/events/break-events.ts';
import { callEvents } from '../../../src/domain/events/call-events.ts';
import { chatEvents } from '../../../src/domain/events/chat-events.ts';
import { creditEvents } from '../../../src/domain/events/credit-events.ts';
import { counterNames, type EventDescriptor } from '../../../src/domain/events/descriptor.ts';
import { eventDescriptors, eventTypes, typesListing } from '../../../src/domain/events/event.ts';
import { consoleEvents } from '../../../src/domain/events/console-events.ts';
import { costEvents } from '../../../src/domain/events/cost-events.ts';
import { identityEvents } from '../../../src/domain/events/identity-events.ts';
import { operatorEvents } from '../../../src/domain/events/operator-events.ts';
import { paymentEvents } from '../../../src/domain/events/payment-events.ts';
import { periodEvents } from '../../../src/domain/events/period-events.ts';
import { rateEvents } from '../../../src/domain/events/rate-events.ts';
import { recoveryEvents } from '../../../src/domain/events/recovery-events.ts';
import { requestEvents } from '../../../src/domain/events/request-events.ts';
import { retentionEvents } from '../../../src/domain/events/retention-events.ts';
import { spendEvents } from '../../../src/domain/events/spend-events.ts';
import { refundEvents } from '../../../src/domain/events/refund-events.ts';
import { transferEvents } from '../../../src/domain/events/transfer-events.ts';
import { triggerEvents } from '../../../src/domain/events/trigger-events.ts';

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
