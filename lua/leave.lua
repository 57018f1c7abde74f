--[[
leave: removes one member from the fleet, at once.

KEYS[1]   aliquot:{0}:fleet:pods     sorted set, member -> corrected time of its last heartbeat, us

ARGV[1]   member: pod id "/" incarnation in hexadecimal digits

Returns   1 when the member was registered, else 0
Errors    none of its own. A set of another type is left for the next heartbeat to replace.

The member's sequence numbers stay until they expire: a batch that was sent twice may still wait in
a connection that has died on the pod's side, and without the record it would be applied again.
]]
local removed = redis.pcall("ZREM", KEYS[1], ARGV[1])
if type(removed) == "table" then return 0 end
return removed
