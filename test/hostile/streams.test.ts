// What travels beside the link: who may open a stream, what follows, payloads that travel apart.
import './suites/stream-openings.ts'
import './suites/stream-payloads.ts'
import './suites/stream-providers.ts'
