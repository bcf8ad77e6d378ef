-- view: single rows above an amount
SELECT at AS t, shop, channel, quantity, amount, tax FROM events WHERE amount > 10

-- served
SELECT at, amount FROM events WHERE amount > 10

-- served
SELECT at, amount FROM events WHERE amount > 20

-- served
SELECT at, amount FROM events WHERE 20 < amount

-- served
SELECT at, amount FROM events WHERE amount BETWEEN 11 AND 30

-- served
SELECT at, amount FROM events WHERE amount = 12.5 OR amount = 20

-- served
SELECT at, amount FROM events WHERE amount IN (11, 12.5, 40)

-- served
SELECT at, amount FROM events WHERE NOT (amount <= 10)

-- served
SELECT at, shop FROM events WHERE shop = 2 AND amount >= 10.01

-- served
SELECT shop, sum(amount) AS s FROM events WHERE amount > 10 GROUP BY shop

-- served
SELECT channel, count(*) AS n FROM events WHERE amount > 10 AND (shop = 1 OR shop = 2) GROUP BY channel

-- served
SELECT sum(tax) AS s FROM events WHERE amount > 5 + 5

-- base: rows of exactly 10 are not in it
SELECT at, amount FROM events WHERE amount >= 10

-- base: rows below are not in it
SELECT at, amount FROM events WHERE amount > 9

-- base: either may be met
SELECT at, amount FROM events WHERE amount > 20 OR shop = 1

-- base: rows without an amount are asked for
SELECT at, amount FROM events WHERE amount > 10 OR amount IS NULL

-- base: no filter at all
SELECT at, amount FROM events

-- base: weight is not in it
SELECT at, weight FROM events WHERE amount > 10

-- base: the other way round
SELECT at, amount FROM events WHERE NOT (amount > 10)

-- view: shops in a list, by day and channel
SELECT date_trunc('day', at) AS t, shop, channel, count(*) AS n, sum(amount) AS amount FROM events WHERE shop IN (1, 2, 3) GROUP BY ALL

-- served
SELECT shop, count(*) AS n FROM events WHERE shop IN (1, 2, 3) GROUP BY shop

-- served
SELECT shop, count(*) AS n FROM events WHERE shop IN (3, 1) GROUP BY shop

-- served
SELECT shop, count(*) AS n FROM events WHERE shop = 2 GROUP BY shop

-- served
SELECT shop, count(*) AS n FROM events WHERE shop = 1 OR shop = 3 GROUP BY shop

-- served
SELECT channel, sum(amount) AS s FROM events WHERE shop BETWEEN 1 AND 3 GROUP BY channel

-- served
SELECT channel, sum(amount) AS s FROM events WHERE shop > 0 AND shop < 4 GROUP BY channel

-- served
SELECT channel, sum(amount) AS s FROM events WHERE shop >= 1 AND shop <= 2 AND channel = 'web' GROUP BY channel

-- served
SELECT channel, sum(amount) AS s FROM events WHERE shop IN (1, 2) AND shop IN (2, 3) GROUP BY channel

-- served
SELECT count(*) AS n FROM events WHERE shop IN (1, 2) AND channel IS NOT NULL

-- served
SELECT count(*) AS n FROM events WHERE shop IN (1, 2) AND channel IS NULL

-- served
SELECT count(*) AS n FROM events WHERE shop IN (1, 2) AND channel LIKE 'w%'

-- served
SELECT count(*) AS n FROM events WHERE shop IN (1, 2) AND coalesce(channel, '') = ''

-- served
SELECT count(*) AS n FROM events WHERE shop = 1 AND length(channel) > 3

-- base: shop 4 is not in it
SELECT shop, count(*) AS n FROM events WHERE shop IN (1, 4) GROUP BY shop

-- base: shop 4 is not in it
SELECT shop, count(*) AS n FROM events WHERE shop < 5 GROUP BY shop

-- base: shops without a number are asked for
SELECT count(*) AS n FROM events WHERE shop IS NULL

-- base: whoever is not 4 may be nobody's
SELECT count(*) AS n FROM events WHERE shop <> 4

-- base: quantity is no key
SELECT count(*) AS n FROM events WHERE shop = 1 AND quantity > 3

-- view: what was paid, by day
SELECT date_trunc('day', at) AS t, paid, channel, count(*) AS n FROM events WHERE paid AND channel IS NOT NULL GROUP BY ALL

-- served
SELECT count(*) AS n FROM events WHERE paid AND channel IS NOT NULL

-- served
SELECT count(*) AS n FROM events WHERE paid AND channel = 'web'

-- served
SELECT count(*) AS n FROM events WHERE paid = true AND channel IN ('web', 'app')

-- served
SELECT channel, count(*) AS n FROM events WHERE channel > 'a' AND paid GROUP BY channel

-- served
SELECT channel, count(*) AS n FROM events WHERE paid AND channel LIKE 'p%' AND channel IS NOT NULL GROUP BY channel

-- base: what was not paid is not in it
SELECT count(*) AS n FROM events WHERE NOT paid AND channel = 'web'

-- base: nothing is said of what was paid
SELECT count(*) AS n FROM events WHERE channel = 'web'

-- base: what is not known to be paid is not in it
SELECT count(*) AS n FROM events WHERE paid IS NOT FALSE AND channel = 'web'

-- base: not paid, or unknown
SELECT count(*) AS n FROM events WHERE coalesce(paid, true) AND channel = 'web'

-- view: two columns compared
SELECT at AS t, shop, product, customer, quantity, amount FROM events WHERE shop = product AND quantity >= 0

-- served
SELECT at, shop FROM events WHERE shop = product AND quantity >= 0

-- served
SELECT at, shop FROM events WHERE product = shop AND quantity > 2

-- served
SELECT count(*) AS n FROM events WHERE shop = product AND quantity = 3

-- served
SELECT count(*) AS n FROM events WHERE shop = 2 AND product = 2 AND quantity BETWEEN 1 AND 5

-- served
SELECT sum(amount) AS s FROM events WHERE shop = product AND product = 1 AND quantity IN (0, 1, 2)

-- base: nothing is said of the product
SELECT count(*) AS n FROM events WHERE shop = 2 AND quantity = 3

-- base: quantity may be less
SELECT count(*) AS n FROM events WHERE shop = product AND quantity > -2

-- base: other values
SELECT count(*) AS n FROM events WHERE shop = 2 AND product = 1 AND quantity = 3

-- view: shops above the first, whose channel is known
SELECT date_trunc('day', at) AS t, shop, channel, count(*) AS n, sum(amount) AS amount FROM events WHERE shop > 1 AND channel IS NOT NULL GROUP BY ALL

-- served
SELECT count(*) AS n FROM events WHERE channel LIKE 'w%' AND shop > 1

-- served
SELECT shop, sum(amount) AS a FROM events WHERE length(channel) > 3 AND shop IN (2, 3) GROUP BY shop

-- served
SELECT count(*) AS n FROM events WHERE NOT (upper(channel) = channel) AND shop > 1

-- base: a channel may be null
SELECT count(*) AS n FROM events WHERE coalesce(channel, 'web') LIKE 'w%' AND shop > 1

-- base: a channel may be null
SELECT count(*) AS n FROM events WHERE (channel LIKE 'w%') IS NOT TRUE AND shop > 1
