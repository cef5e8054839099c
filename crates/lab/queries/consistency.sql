-- Consistency: the number of orders whose total price is not the sum of their lines' charges (0 in sound data).
-- The generator works in whole cents and cuts fractions off twice in every line, so all values are integers
-- here and every division is an integer division, in this order. An order without lines counts as differing.
select
    count(*) as inconsistent_orders
from
    orders
    left join (
        select
            l_orderkey,
            sum(
                cast(l_extendedprice * 100 as bigint)
                * (100 - cast(l_discount * 100 as bigint)) / 100
                * (100 + cast(l_tax * 100 as bigint)) / 100
            ) as total_cents
        from
            lineitem
        group by
            l_orderkey
    ) as lines on l_orderkey = o_orderkey
where
    total_cents is null
    or total_cents <> cast(o_totalprice * 100 as bigint);
