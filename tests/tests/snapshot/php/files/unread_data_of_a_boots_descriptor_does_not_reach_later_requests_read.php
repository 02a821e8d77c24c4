<?php
foreach ($pair as $end) {
    stream_set_blocking($end, false);
}
echo json_encode(fread($pair[1], 100)), json_encode(fread($pair[0], 100));
