"""The lives of an account: each time it is bound again it is another binding, with the same chats.

With other settings it is another account, as while it is bound: those may name another server.
"""

# The numbers of all bindings, also the earlier ones, of the account of binding {0}.
SAME_ACCOUNT = """
    (SELECT b.id FROM binding now JOIN binding b ON b.adapter = now.adapter AND b.account = now.account
     AND b.settings = now.settings
     WHERE now.id = {0})
"""
# A table `known_as` with all ids that chat ?2 of binding ?1 has had, also the present one.
KNOWN_AS = f"""
    WITH RECURSIVE known_as (chat) AS (
        SELECT ?2 UNION
        SELECT u.chat FROM known_as k
        JOIN platform_update u INDEXED BY platform_update_renamed ON u.platform_id = k.chat
        WHERE u.outcome = 'renamed' AND u.binding IN {SAME_ACCOUNT.format("?1")})
"""
