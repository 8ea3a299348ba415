'use strict';
// Where mocha's tests begin and end, for the record of what runs under each.

const { beginTest, endTest } = require('./coverage.cjs');

exports.mochaHooks = {
  beforeEach(done) {
    try {
      beginTest();
    } catch {
      // the test runs without a record
    }
    done();
  },
  afterEach(done) {
    try {
      endTest(this.currentTest.titlePath().join(' > '), this.currentTest.state === 'failed');
    } catch {
      // as above
    }
    done();
  },
};
