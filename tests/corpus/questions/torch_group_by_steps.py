    first = 0
    while rank not in order[first: first + 2]:
        first += 2
    pair = order.tolist()[first: first + 2]
    group = dist.new_group(pair)
