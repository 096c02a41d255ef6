"""What tests share: markers, fakes and builders."""
