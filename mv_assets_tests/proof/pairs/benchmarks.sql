-- view: prices as in TPC-H's first query
SELECT date_trunc('day', at) AS t, channel, paid, sum(quantity) AS sum_qty, sum(amount) AS sum_base, sum(amount * (1 - tax)) AS sum_disc, sum(amount * (1 - tax) * (1 + tax)) AS sum_charge, count(quantity) AS quantities, count(amount) AS amounts, count(tax) AS taxes, sum(tax) AS sum_tax, count(*) AS n FROM events GROUP BY ALL

-- served
SELECT channel, paid, sum(quantity) AS sum_qty, sum(amount) AS sum_base, sum(amount * (1 - tax)) AS sum_disc, sum(amount * (1 - tax) * (1 + tax)) AS sum_charge, avg(quantity) AS avg_qty, avg(amount) AS avg_price, avg(tax) AS avg_disc, count(*) AS n FROM events WHERE at <= '1970-01-03' GROUP BY channel, paid ORDER BY channel, paid

-- served
SELECT sum(amount * (1 - tax)) AS revenue FROM events WHERE at >= '1970-01-01' AND at < '1970-01-03' AND channel = 'web'

-- served
SELECT channel, sum(CASE WHEN paid THEN amount ELSE 0 END) AS high, sum(CASE WHEN NOT paid THEN amount ELSE 0 END) AS low FROM events GROUP BY channel

-- base: what the sum is divided in depends on its type
SELECT 100.00 * sum(CASE WHEN channel LIKE 'w%' THEN amount * (1 - tax) ELSE 0 END) / sum(amount * (1 - tax)) AS promo FROM events

-- served
SELECT year(at) AS y, sum(amount * (1 - tax)) AS volume FROM events GROUP BY year(at) ORDER BY y

-- served
WITH revenue AS (SELECT channel, sum(amount * (1 - tax)) AS total FROM events GROUP BY channel) SELECT channel, total FROM revenue WHERE total = (SELECT max(total) FROM revenue)

-- base: quantity is no key
SELECT sum(amount * tax) AS revenue FROM events WHERE quantity < 24 AND tax BETWEEN 0.05 AND 0.07

-- base: another product
SELECT sum(amount * tax) AS revenue FROM events

-- view: a star, as in the star schema benchmark
SELECT date_trunc('day', e.at) AS t, s.country, s.city, p.category, p.brand, sum(e.amount) AS revenue, sum(e.amount - e.tax) AS profit, count(*) AS n FROM events e JOIN shops s ON e.shop = s.shop JOIN products p ON e.product = p.product GROUP BY ALL

-- served
SELECT sum(e.amount) AS revenue, year(e.at) AS y, p.brand FROM events e JOIN products p ON e.product = p.product JOIN shops s ON e.shop = s.shop WHERE p.category = 'a' AND s.country = 'AT' GROUP BY year(e.at), p.brand ORDER BY y, p.brand

-- served
SELECT sum(e.amount) AS revenue, p.brand FROM events e, shops s, products p WHERE e.shop = s.shop AND e.product = p.product AND p.brand BETWEEN 'acme' AND 'bolt' GROUP BY p.brand

-- served
SELECT s.country, s.city, sum(e.amount) AS revenue FROM events e JOIN shops s ON e.shop = s.shop JOIN products p ON e.product = p.product WHERE s.city IN ('Bern', 'Graz') GROUP BY 1, 2 ORDER BY revenue DESC

-- served
SELECT year(e.at) AS y, s.country, sum(e.amount - e.tax) AS profit FROM events e JOIN shops s ON e.shop = s.shop JOIN products p ON e.product = p.product WHERE p.category = 'a' OR p.category = 'b' GROUP BY 1, 2

-- served
SELECT year(e.at) AS y, s.city, p.brand, sum(e.amount - e.tax) AS profit FROM events e JOIN shops s ON e.shop = s.shop JOIN products p ON e.product = p.product WHERE s.country = 'AT' AND year(e.at) IN (1970, 1971) GROUP BY ALL

-- base: products are not joined: some rows are lost by it
SELECT s.country, sum(e.amount) AS revenue FROM events e JOIN shops s ON e.shop = s.shop GROUP BY s.country

-- base: quantity is no key
SELECT sum(e.amount) AS revenue FROM events e JOIN shops s ON e.shop = s.shop JOIN products p ON e.product = p.product WHERE e.quantity < 25

-- view: hits by hour, as ClickBench counts them
SELECT date_trunc('hour', at) AS t, shop, product, channel, count(*) AS n, sum(quantity) AS quantity, count(quantity) AS quantities, min(shipped) AS first, max(shipped) AS last, count(DISTINCT customer) AS customers FROM events GROUP BY ALL

-- served
SELECT count(*) AS c FROM events

-- served
SELECT count(*) AS c FROM events WHERE product <> 0

-- served
SELECT sum(quantity) AS s, count(*) AS c, avg(quantity) AS a FROM events

-- served
SELECT min(shipped) AS a, max(shipped) AS b FROM events

-- served
SELECT product, count(*) AS c FROM events WHERE product <> 0 GROUP BY product ORDER BY count(*) DESC, product

-- served
SELECT shop, count(DISTINCT product) AS u FROM events GROUP BY shop ORDER BY u DESC, shop LIMIT 10

-- served
SELECT channel, count(*) AS c FROM events WHERE channel <> '' GROUP BY channel ORDER BY c DESC, channel LIMIT 10

-- served
SELECT shop, channel, count(*) AS c FROM events WHERE channel <> '' GROUP BY shop, channel ORDER BY c DESC, shop, channel LIMIT 10

-- served
SELECT count(*) AS n FROM events WHERE channel LIKE '%o%'

-- served
SELECT date_trunc('hour', at) AS h, count(*) AS c FROM events WHERE at >= '1970-01-02' AND at <= '1970-01-03' AND shop = 2 GROUP BY 1 ORDER BY 1 LIMIT 10 OFFSET 2

-- served
SELECT shop, sum(quantity) AS s, count(*) AS c, avg(quantity) AS a, count(DISTINCT product) AS p FROM events GROUP BY shop ORDER BY c DESC, shop LIMIT 10

-- served
SELECT 1 AS one, channel, count(*) AS c FROM events GROUP BY 1, channel

-- served
SELECT product, product - 1 AS a, product - 2 AS b, count(*) AS c FROM events GROUP BY product, product - 1, product - 2

-- served
SELECT length(channel) AS l, avg(quantity) AS a, count(*) AS c FROM events WHERE channel <> '' GROUP BY 1 HAVING count(*) > 2

-- base: customers of hours can't be added
SELECT count(DISTINCT customer) AS c FROM events

-- base: customer is no key
SELECT customer, count(*) AS c FROM events GROUP BY customer ORDER BY count(*) DESC LIMIT 10

-- base: single rows
SELECT * FROM events WHERE channel LIKE '%o%'

-- served
SELECT sum(product) AS s0, sum(product + 1) AS s1 FROM events

-- base: minutes are finer than hours
SELECT extract(MINUTE FROM at) AS m, channel, count(*) AS c FROM events GROUP BY 1, 2
