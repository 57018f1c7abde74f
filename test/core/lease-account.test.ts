import { expect, it } from "vitest";
import { LeaseAccount } from "../../src/core/lease-account.ts";
import { LEASE_REPLY, LEASE_REPLY_FIELDS } from "../../src/core/store-call.ts";
import { limitOf, MS, SECOND } from "../support/virtual-fleet.ts";

const limit = limitOf({ tokens: 100, burst: 100, mode: "leased" });
const terms = (now: number) => ({ now, pods: 2, rttUs: 2 * MS });

/** An account that was granted tokens of slot 3 by a call sent at 0. */
function accountWith(tokens: number): LeaseAccount {
  const account = new LeaseAccount(0);
  const reply = new Float64Array(LEASE_REPLY_FIELDS);
  reply[LEASE_REPLY.granted] = tokens;
  reply[LEASE_REPLY.slot] = 3;
  reply[LEASE_REPLY.level] = 50;
  account.replied(reply, 0, { now: 2 * MS, sentAt: 0, storeNow: 1, isReport: false });
  return account;
}

const REPORT = { waiting: [], isReport: true, isInDoubt: false, decisionTimeoutUs: 10 * MS };

it("a lease is not used after nine tenths of a second from before it was asked for", () => {
  const account = accountWith(10);
  expect(account.purse.have(0.89 * SECOND)).toBe(10);
  expect(account.purse.have(0.9 * SECOND)).toBe(0);
});

it("tokens put back after the store was told of their spending stay spent", () => {
  const account = accountWith(10);
  const early = account.purse.spend(4);
  account.cut(limit, terms(10 * MS), REPORT);
  const late = account.purse.spend(3);
  account.purse.unspend(early);
  account.purse.unspend(late);
  expect(account.purse.have(20 * MS)).toBe(6);
  const { reports } = account.cut(limit, terms(30 * MS), REPORT);
  for (const [, spent, returned] of reports) {
    expect(spent).toBeGreaterThanOrEqual(0);
    expect(returned).toBeGreaterThanOrEqual(0);
  }
});

it("a lease that was idle goes back", () => {
  const account = accountWith(10);
  expect(account.hasReport(limit, terms(0.5 * SECOND))).toBe(false);
  expect(account.hasReport(limit, terms(0.75 * SECOND))).toBe(true);
  const { reports } = account.cut(limit, terms(0.75 * SECOND), REPORT);
  expect(reports).toEqual([[3, 0, 10]]);
});

it("nothing is told while what is told could be lost", () => {
  const account = accountWith(10);
  account.purse.returnAll();
  const doubtful = { ...REPORT, isInDoubt: true };
  expect(account.cut(limit, terms(10 * MS), doubtful).reports).toEqual([]);
  expect(account.cut(limit, terms(20 * MS), REPORT).reports).toEqual([[3, 0, 10]]);
  expect(account.cut(limit, terms(30 * MS), REPORT).reports).toEqual([]);
});

it("leases of a store that has lost its data are spent and told of no slot that there is", () => {
  const { purse } = accountWith(10);
  purse.follow(7);
  purse.spend(4);
  purse.follow(8);
  expect(purse.have(20 * MS)).toBe(6);
  purse.spend(1);
  purse.returnAll();
  expect(purse.takeReports()).toEqual([[0, 1, 5]]);
});
