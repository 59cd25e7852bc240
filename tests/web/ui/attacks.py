"""What is no request of the page itself: each with the headers that it changes, and the answer."""

from uwf_git.web.ui.application import CHAT, ROUTES, STREAM

DATA = [*((route.method, route.path) for route in ROUTES), ("GET", STREAM), ("POST", CHAT)]
"""All that needs the token: a new route is in the table by being one."""

ATTACKS = {
    "no token": ({"Authorization": ""}, 401),
    "an old token": ({"Authorization": "Bearer " + "A" * 43}, 401),
    "another scheme": ({"Authorization": "Basic  right"}, 401),
    "a cookie": ({"Authorization": "", "Cookie": "token=x"}, 401),
    "a foreign Host": ({"Host": "evil.example"}, 421),
    "a Host that begins like ours": ({"Host": "127.0.0.1.evil.example"}, 421),
    "another name in Host": ({"Host": "localhost.:1"}, 421),
    "no Host": ({"Host": ""}, 421),
    "a foreign Origin": ({"Origin": "https://evil.example"}, 403),
    "an Origin on another port": ({"Origin": "http://127.0.0.1:1"}, 403),
    "the Origin of a file": ({"Origin": "null"}, 403),
    "a cross-site request": ({"Sec-Fetch-Site": "cross-site"}, 403),
    "another port's request": ({"Sec-Fetch-Site": "same-site"}, 403),
}
