// What is said before a link stands. One process for all of these: starting libp2p costs more than most of the tests.
import './suites/handshake-dialling.ts'
import './suites/handshake-dialled.ts'
import './suites/handshake-between.ts'
import './suites/downgrade.ts'
import './suites/canonical.ts'
import './suites/names.ts'
import './suites/certificates.ts'
