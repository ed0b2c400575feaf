// What comes by way of other agents, and goes on to others.
import './suites/forwarded.ts'
import './suites/forwarders.ts'
import './suites/handed-tasks.ts'
