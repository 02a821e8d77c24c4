<?php
for ($i = 0; $i < 50; $i++) {
    echo base64_encode(random_bytes(768)), "\n";
}
