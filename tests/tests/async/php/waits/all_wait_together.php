<?php
Meeting::$arrived['in'] = (Meeting::$arrived['in'] ?? 0) + 1;
for ($turn = 0; $turn === 0 || Meeting::$arrived['in'] < __CROWD__ && $turn < 150; $turn++) {
    __WAIT__;
}
echo $m, Meeting::$arrived['in'];
